"""What all estimators share: their parameters, the learner behind them, and their files."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from driftline.committee import Committee
from driftline.errors import InputError
from driftline.estimators.making import How, make_learner
from driftline.estimators.missing import means_from, where_missing
from driftline.inputs import check_sparse
from driftline.learner import Balance, Member, checked_weights
from driftline.parts import check_whole
from driftline.sets import SetLevel
from driftline.state import archive
from driftline.state.arena import inside, within
from driftline.state.loading import learner_from
from driftline.tasks import Task
from driftline.typing import Inputs, Json, Labels, Saved

__all__ = ["DriftEstimator", "validated"]


@dataclass(eq=False, repr=False)
class DriftEstimator(BaseEstimator):
    """Base of all estimators: a learner in ``learner_``, made anew by ``fit``.

    Parameters are fields: scikit-learn reads them from the signature that follows.
    """

    learner: How = "auto"
    _: KW_ONLY
    scaling: bool = True
    epochs: int = 1
    random_state: int | np.random.RandomState | None = None

    if TYPE_CHECKING:
        learner_: Member | Committee
        n_features_in_: int
        feature_names_in_: np.ndarray
        classes_: np.ndarray
        _labels: Any  # Labels, of classifiers and taggers
        #: Sums and counts of every feature, where missing cells become means; how many rows of
        #: each class there were, where these are to count alike; the level of sets of labels.
        _means: np.ndarray | None
        _balance: Balance | None
        _level: SetLevel | None

    _means = _balance = _level = None

    @property
    def n_rounds_(self) -> int:
        """How many rounds the learner has played."""
        return self.learner_.rounds

    @property
    def alarms_(self) -> np.ndarray:
        """The rounds after which losses were seen to have risen, counted from 0; the last thousand.

        A committee keeps them, as all learners by name are; see ``trace.alarms`` for others.
        """
        if not isinstance(self.learner_, Committee):
            raise AttributeError("only a committee keeps alarms: others have them on their traces")
        return self.learner_.alarms

    def describe(self) -> str:
        """Say which learner is behind it, and which theorem applies."""
        check_is_fitted(self)
        return self.learner_.describe()

    def save(self, path: str | Path) -> Path:
        """Write the fitted estimator to one file of plain data, for :func:`driftline.load`.

        The loaded estimator goes on with the same bits. A function given as ``learner`` is not
        saved: the loaded estimator has None there, and can go on learning, but ``fit`` needs a
        ``learner`` to be set first.
        """
        return archive.write(path, *self.to_saved())

    def to_saved(self) -> Saved:
        """Return all of the estimator as plain data and arrays."""
        check_is_fitted(self)
        params = self.get_params(deep=False)
        if not isinstance(params["learner"], str):
            params["learner"] = None
        if "dtype" in params:
            params["dtype"] = np.dtype(params["dtype"]).name
        for name, value in params.items():
            params[name] = _plain(name, value)
        learner, arrays = self.learner_.to_saved()
        names = getattr(self, "feature_names_in_", None)
        about = {
            "kind": type(self).__name__,
            "params": params,
            "features": self.n_features_in_,
            "names": None if names is None else names.tolist(),
            "fitted": self._to_plain(),
            "learner": learner,
        }
        if (means := getattr(self, "_means", None)) is not None:
            about["means"] = means.tolist()
        if (balance := getattr(self, "_balance", None)) is not None:
            about["balance"] = balance.to_plain()
        made = within("learner", arrays)
        if (level := getattr(self, "_level", None)) is not None:
            about["sets"], own = level.to_saved()
            made |= within("sets", own)
        return about, made

    @classmethod
    def from_saved(cls, about: Json, arrays: dict[str, np.ndarray]) -> Self:
        """Return the estimator from what :meth:`to_saved` returned."""
        made = cls(**{name: _unplain(value) for name, value in about["params"].items()})
        if about["params"].get("dtype", "float64") not in ("float64", "float32"):
            raise InputError(f"the weights cannot be of type {about['params']['dtype']!r}")
        made.learner_ = learner_from(about["learner"], inside("learner", arrays))
        made.n_features_in_ = int(about["features"])
        if about["names"] is not None:
            names = [str(name) for name in about["names"]]
            if len(names) != made.n_features_in_:
                raise InputError(f"{made.n_features_in_} features have {len(names)} names")
            made.feature_names_in_ = np.array(names, dtype=object)
        made._from_plain(about["fitted"])
        if "means" in about:
            made._means = means_from(about["means"], made.n_features_in_)
        if "balance" in about:
            made._balance = Balance.from_plain(about["balance"])
        if "sets" in about:
            made._level = SetLevel.from_saved(about["sets"], inside("sets", arrays))
        features, task = made.learner_.features, made.learner_.task
        if features != made.n_features_in_ or made._task != task:
            raise InputError(
                f"the learner has {features} features and {task!r}, but the estimator "
                f"{made.n_features_in_} and {made._task!r}"
            )
        return made

    @property
    def _task(self) -> Task:
        """The task for the labels seen so far."""
        raise NotImplementedError

    def _to_plain(self) -> Any:
        """Return the fitted attributes beside the learner as plain data."""
        return None

    def _from_plain(self, fitted: Any) -> None:
        """Restore what :meth:`_to_plain` returned."""

    def _start(self, y: Any, classes: Any) -> None:
        """Begin with a learner for the first labels."""
        raise NotImplementedError

    def _codes(self, y: Any) -> Any:
        """Return labels as the learner takes them."""
        raise NotImplementedError

    def _learn_rounds(
        self,
        given: tuple[Inputs, Any],
        sample_weight: Any,
        classes: Any = None,
        passes: int | None = None,
    ) -> Self:
        """Learn from rounds of several rows and their labels; with ``passes`` start anew."""
        rounds, labels = given
        weights = checked_weights(sample_weight, len(labels))
        if passes is not None or "learner_" not in self.__dict__:
            self._start(labels, classes)
        codes = self._codes(labels)
        for _ in range(passes or 1):
            self.learner_.learn_rows(rounds, codes, weights)
        return self

    def _begin(self, task: Task, **options: Any) -> None:
        """Start with a new learner for a task."""
        if self.learner is None:
            raise InputError(
                "the function that made this estimator's learner was not saved with it: set "
                "`learner` before fitting anew"
            )
        check_whole("epochs", self.epochs, 1, 10**9)
        state, seed = self.random_state, 0
        if state is not None:
            seed = int(check_random_state(state).randint(np.iinfo(np.int32).max))
        self.learner_ = make_learner(self.learner, task, seed=seed, **options)


def validated(estimator: DriftEstimator, X: Inputs, *y: Labels, **options: Any) -> Any:
    """Return rows, and labels if there are any, after all of scikit-learn's checks.

    Sparse matrices are checked before, since scikit-learn converts them without bounds checks.
    """
    for given in (X, *y):
        if issparse(given):
            check_sparse(given)
    try:
        return validate_data(estimator, X, *y, accept_sparse="csr", **options)
    except ValueError as error:
        if "Input X contains NaN" not in str(error):
            raise
        names = getattr(X, "columns", None)
        where = where_missing(X, None if names is None else np.asarray(names))
        raise InputError(
            f"Input X contains NaN{where and ': ' + where}. Fill missing cells in, or let "
            f"{type(estimator).__name__} do so by missing='zero' or missing='mean'"
        ) from error


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as plain data, or raise an InputError."""
    if isinstance(value, (np.ndarray, list, tuple)):
        return [_plain(name, item) for item in value]
    if isinstance(value, dict):  # whose keys need not be texts
        return {"pairs": [_plain(name, pair) for pair in value.items()]}
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (str, bool, int, float, type(None))):
        raise InputError(f"{name} is {value!r}, which is no plain data that can be saved")
    return value


def _unplain(value: Any) -> Any:
    """Return a parameter from what :func:`_plain` returned."""
    return dict(value["pairs"]) if isinstance(value, dict) else value
