"""What classifiers share: scikit-learn's methods, and two of our own."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from driftline.committee.pooling import decoded, drawn
from driftline.errors import InputError
from driftline.estimators.labels import Labels
from driftline.estimators.rows import RowEstimator, row_weights
from driftline.learner import LEAST_WEIGHT, MOST_WEIGHT, Balance, multiplied
from driftline.typing import CheckedLabels, Inputs, Json
from driftline.typing import Labels as Given

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["ClassWeight", "RowClassifier"]

#: What weights classes have: none, the same in total, or a weight for each.
ClassWeight: TypeAlias = str | dict[Any, float] | None


@dataclass(eq=False, repr=False)
class RowClassifier(ClassifierMixin, RowEstimator):
    """Base of classifiers: one row of inputs a round, an array or a CSR matrix.

    Parameters are those of :class:`~driftline.estimators.DriftClassifier`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Let messages about arguments name the class that was called."""
        super().__init_subclass__(**options)
        for name in ("fit", "partial_fit", "predict", "predict_proba"):
            if name not in vars(cls):
                method = _renamed(getattr(cls, name), f"{cls.__qualname__}.{name}")
                setattr(cls, name, method)

    _: KW_ONLY
    missing: str = "refuse"
    categories: dict[int, int] | None = None
    class_weight: ClassWeight = None
    dtype: npt.DTypeLike = "float64"

    def fit(self, X: Inputs, y: Given, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Start anew, and learn from rows in their order: that of the stream.

        A row of sample weight h counts h times: see :meth:`driftline.Learner.run`.
        """
        X, y = self._checked(X, y, reset=True)
        weights = row_weights(sample_weight, X)
        self._start(y, None)
        self._learn(X, self._codes(y), weights)
        level, self._level = self._level, None  # later passes know the labels
        for _ in range(self.epochs - 1):
            self._learn(X, self._codes(y), weights)
        self._level = level
        return self

    def partial_fit(
        self,
        X: Inputs,
        y: Given,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Go on learning from rows in their order.

        ``classes`` may name classes that have not been seen yet, in any call. A row of sample
        weight h counts h times.
        """
        first = "learner_" not in self.__dict__
        plain = not first and sample_weight is None and self._knows(classes)
        if plain and self._learn_plain(X, y):
            return self
        X, y = self._checked(X, y, reset=first)
        weights = row_weights(sample_weight, X, begun=True)
        (self._start if first else self._add_classes)(y, classes)
        self._learn(X, self._codes(y), weights)
        return self

    def predict(self, X: Inputs) -> np.ndarray:
        """Return the most probable class of every row."""
        best = self._log_chances(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Inputs) -> np.ndarray:
        """Return the probability of every class, in the order of ``classes_``.

        The softmax of the scores; for a committee its mean over members by their weights.
        """
        return np.exp(self._log_chances(X))

    def predict_log_proba(self, X: Inputs) -> np.ndarray:
        """Return the logarithm of :meth:`predict_proba`."""
        return self._log_chances(X)

    def decision_function(self, X: Inputs) -> np.ndarray:
        """Return the log-probability of every class; for two classes, their log-odds."""
        logs = self._log_chances(X)
        if logs.shape[1] == 1:
            return np.zeros(len(logs))
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def decoding_distribution(self, X: Inputs) -> np.ndarray:
        """Return the probability with which the learner's own decoder predicts every class.

        This is the randomized decoder of theorem 1: a class drawn from it has an expected loss
        below the surrogate loss by a constant factor. In a committee a member is drawn first, by
        its weight. It is not an estimate of the label's probability: see :meth:`predict_proba`.
        Members that take the highest score give all probability to one class.
        """
        check_is_fitted(self)
        return self._own(self._looking(decoded, X, max(2, len(self._labels))))

    def sample_predict(
        self, X: Inputs, rng: int | np.random.Generator | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Draw a class for every row from :meth:`decoding_distribution`.

        ``rng`` is a generator or a seed; with None draws differ every time.
        """
        chances = self.decoding_distribution(X)
        return self.classes_[drawn(chances, rng)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    # -- what each kind does by itself

    def _add_classes(self, y: np.ndarray, classes: npt.ArrayLike | None) -> None:
        """Grow the learner for new labels, or refuse them."""
        raise NotImplementedError

    def _own(self, columns: np.ndarray) -> np.ndarray:
        """Return columns in the order of ``classes_``."""
        raise NotImplementedError

    def _log_chances(self, X: Inputs) -> np.ndarray:
        """Return the logarithm of every class's probability."""
        raise NotImplementedError

    def _weights(
        self, codes: CheckedLabels, sample_weight: np.ndarray | None
    ) -> tuple[np.ndarray | None, Balance | None]:
        """Return sample weights times those of classes, and the counts of classes then."""
        how, balance = self.class_weight, None
        if how is None:
            return sample_weight, None
        classes = self._class_codes(codes)
        if isinstance(how, str) and how == "balanced":
            weights, balance = (self._balance or Balance()).weigh(classes)
        elif isinstance(how, dict):
            weights = np.array(
                [_class_weight(how.get(n, 1.0), n) for n in self._labels.names.tolist()]
            )[classes]
        else:
            raise InputError(
                "class_weight must be None, 'balanced' or a weight for each class, as in "
                f"{{'rare': 10.0}}, not {how!r:.80}"
            )
        if sample_weight is not None:
            weights = multiplied(weights, sample_weight)
        return weights, balance

    def _class_codes(self, codes: CheckedLabels) -> np.ndarray:
        """Return the code of every row's class."""
        return np.asarray(codes)

    @property
    def _outcomes(self) -> Sequence[object]:
        if self._labels is None:  # tags, which have numbers
            return list(self.classes_)
        names = self._labels.names.tolist()
        return [*names, "(other)"] if not self._task.geometry.tags and len(names) == 1 else names

    def _knows(self, classes: npt.ArrayLike | None) -> bool:
        """Return quickly whether these classes are known: many callers pass them every time."""
        if classes is None:
            return True
        try:
            values = np.asarray(classes)
            return values.ndim == 1 and self._labels.codes(values) is not None
        except (AttributeError, TypeError, ValueError):  # rows of tags, or nothing to compare
            return False

    def _plain_codes(self, y: Given, count: int) -> CheckedLabels | None:
        """Return labels as the learner takes them; None if they need scikit-learn's checks."""
        if count == 1 and type(y) in (np.ndarray, list) and len(y) == 1:
            try:
                code = self._labels.code(y[0])
            except TypeError:  # not a label, since it has no hash
                return None
            return None if code is None else [code]
        values = np.asarray(y)
        return self._labels.codes(values) if values.shape == (count,) else None

    def _to_plain(self) -> Json | int:
        return self._labels.to_plain()

    def _from_plain(self, fitted: Json) -> None:
        self._labels = Labels.from_plain(fitted)
        self.classes_ = self._labels.sorted


def _class_weight(value: Any, name: object) -> float:
    """Return the weight of a class, if it can be one."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not (value == 0.0 or LEAST_WEIGHT <= value <= MOST_WEIGHT):
        raise InputError(
            f"class_weight must be 0, or lie between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}, but "
            f"that of {name!r} is {value!r:.40}"
        )
    return float(value)


def _renamed(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a copy of a method that goes by another qualified name."""
    made = types.FunctionType(
        method.__code__,
        method.__globals__,
        method.__name__,
        method.__defaults__,
        method.__closure__,
    )
    made.__kwdefaults__, made.__doc__ = method.__kwdefaults__, method.__doc__
    made.__annotations__, made.__module__ = method.__annotations__, method.__module__
    made.__qualname__ = name
    return made
