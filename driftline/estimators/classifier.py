"""Classification of a stream."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from driftline.committee.pooling import chances_and_doubt, chances_of, drawn
from driftline.errors import InputError
from driftline.estimators.classifying import RowClassifier
from driftline.estimators.labels import Labels, different
from driftline.sets import Adaptive
from driftline.tasks import Abstaining, Multiclass, Task
from driftline.typing import Inputs
from driftline.typing import Labels as Given

__all__ = ["DriftClassifier"]


@dataclass(eq=False, repr=False)
class DriftClassifier(RowClassifier):
    """One of several classes, on a stream that drifts.

    Rows are learned from in their order. Classes may first appear later: their weights then start
    at 0, and the scores of the others do not change. Labels are strings or numbers.

    Parameters
    ----------
    learner
        ``"auto"``, ``"paper"``, or a function from a task to a learner; see
        :func:`~driftline.estimators.make_learner`.
    scaling
        Whether inputs are standardised as they come, for learners given by name.
    epochs
        How often ``fit`` goes through the rows.
    missing
        What becomes of cells that are NaN: ``"refuse"``, ``"zero"``, or ``"mean"``, that of all
        values in the rows learned from before (0 before the first); means are for dense rows.
    categories
        Which columns have categories, and how many codes 0, 1, ... of each are learned by
        themselves, such as ``{2: 30}``, for learners given by name; a missing one is no category.
        See :func:`driftline.auto`.
    class_weight
        None for classes that count alike row by row; ``"balanced"`` for weights by how rare a class
        has been so far, ``n / (K n_k)`` and at most 100, so that classes count alike in total; or a
        weight for each class, 1 where none is given.
    abstain
        The cost of no answer, where a wrong one costs 1; None for an answer to every row. With a
        cost, ``predict`` returns an array of objects that has None for rows without an answer.
    dtype
        The type of the weights, for learners given by name: ``float64`` or ``float32``.
    random_state
        The seed of the learner's random numbers, a ``RandomState``, or None for seed 0.
    coverage
        The share of rows whose class is to be in :meth:`predict_set`, such as 0.9; None for no
        sets. Rows are then learned from one by one, which takes longer.

    Attributes
    ----------
    classes_
        All classes seen or named so far, sorted.
    learner_
        The :class:`~driftline.OGD` or :class:`~driftline.Committee` that learns.
    n_rounds_
        How many rounds it has played.

    Examples
    --------
    >>> from driftline.streams import DigitTriples
    >>> stream = DigitTriples(rounds=2000, flips=1, seed=0)
    >>> names = np.array(["zero", "one", "two"])
    >>> model = DriftClassifier()
    >>> for start in range(0, 2000, 100):
    ...     rows = slice(start, start + 100)
    ...     model = model.partial_fit(stream.inputs[rows], names[stream.labels[rows]])
    >>> model.classes_
    array(['one', 'two', 'zero'], dtype='<U4')
    >>> bool(model.score(stream.inputs[-500:], names[stream.labels[-500:]]) > 0.95)
    True
    >>> doubting = DriftClassifier("fast", abstain=0.1)
    >>> doubting = doubting.fit(stream.inputs[:30], names[stream.labels[:30]])
    >>> doubting.predict(stream.inputs[36:40])
    array(['zero', 'zero', None, 'two'], dtype=object)
    """

    _: KW_ONLY
    abstain: float | None = None
    coverage: float | None = None

    def predict(self, X: Inputs) -> np.ndarray:
        """Return the class of every row; with ``abstain``, None where there is no answer.

        These are what the learner predicts, also in a run: its vote, which costs at most a factor
        more than its members do. None is no class, whatever classes are called; metrics of
        scikit-learn refuse it, and do not count it as a wrong answer, nor as a right one.
        """
        logs, none = self._chances(X)
        best = self.classes_[logs.argmax(axis=1)]
        if self.abstain is None:
            return best
        made = best.astype(object)
        made[none] = None
        return made

    def sample_predict(
        self, X: Inputs, rng: int | np.random.Generator | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Draw a class for every row from :meth:`decoding_distribution`.

        With ``abstain`` rows of it may add up to less than 1: the rest is the probability of None.
        ``rng`` is a generator or a seed; with None draws differ every time.
        """
        if self.abstain is None:
            return super().sample_predict(X, rng)
        chances = self.decoding_distribution(X)
        rest = np.maximum(1.0 - chances.sum(axis=1, keepdims=True), 0.0)
        names: Any = [*self.classes_.tolist(), None]
        codes = drawn(np.hstack([chances, rest]), rng)
        return np.array([names[code] for code in codes], dtype=object)

    def score(self, X: Inputs, y: Given, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy; with ``abstain``, 1 minus the mean cost.

        A right answer counts 1, a wrong one 0, and none ``1 - abstain``.
        """
        if self.abstain is None:
            return float(super().score(X, y, sample_weight))
        made, labels = self.predict(X), np.asarray(y)
        if labels.shape != made.shape:
            raise InputError(f"{len(made)} rows need as many labels, not {labels.shape}")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        right = 1.0 - self.abstain
        points = [right if p is None else float(p == y) for p, y in zip(made, labels, strict=True)]
        return float(np.average(points, weights=weights))

    def predict_set(self, X: Inputs) -> np.ndarray:
        """Return a set of classes for every row: a boolean array with a column for each class.

        Columns are in the order of ``classes_``. Over any stretch of the rows learned from, the
        share of rows whose class was in the set is ``coverage`` or more, less 40 rows; see
        :class:`driftline.sets.Adaptive`. The most probable class is always in it.

        >>> from driftline.streams import DigitTriples
        >>> stream = DigitTriples(rounds=600, flips=1, seed=0)
        >>> model = DriftClassifier("fast", coverage=0.95).fit(stream.inputs, stream.labels)
        >>> model.predict_set(stream.inputs[:2]).shape
        (2, 3)
        """
        check_is_fitted(self)
        if self._level is None:
            raise InputError(
                "there are no sets of classes: expected DriftClassifier(coverage=0.9), say, before "
                "rows were learned from"
            )
        made = self._level.sets(self._looking(chances_of, X))
        if len(self._labels) == 1:
            return made[:, :1] | True
        return made[:, self._labels.places]

    def _start(self, y: np.ndarray, classes: npt.ArrayLike | None) -> None:
        names = different(y)
        if classes is not None:
            named = Labels(different(classes))
            names = named.names if not len(named.new(names)) else named.more(names).names
        self._labels = Labels(names)
        self.classes_ = self._labels.sorted
        level = None if self.coverage is None else Adaptive(self.coverage).level()
        self._begin_rows()
        self._level = level

    def _add_classes(self, y: np.ndarray, classes: npt.ArrayLike | None) -> None:
        labels = self._labels.more(different(y))
        labels = labels if classes is None else labels.more(different(classes))
        if len(labels) > len(self._labels):
            self._labels, self.classes_ = labels, labels.sorted
            self.learner_ = self.learner_.grown(classes=self._task.dim)

    @property
    def _task(self) -> Task:
        """The task, with at least two classes: beside a single one there is an unnamed class."""
        task = Multiclass(max(2, len(self._labels)))
        return task if self.abstain is None else Abstaining(task, self.abstain)

    def _codes(self, y: np.ndarray) -> Any:
        return self._labels.codes(y)

    def _own(self, columns: np.ndarray) -> np.ndarray:
        if len(self._labels) == 1:
            return np.ones((len(columns), 1))
        return columns[:, self._labels.places]

    def _log_chances(self, X: Inputs) -> np.ndarray:
        return self._chances(X)[0]

    def _chances(self, X: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithm of every class's probability, and which rows have no answer."""
        logs, none = self._looking(chances_and_doubt, X)
        if len(self._labels) == 1:
            return np.zeros((len(logs), 1)), none
        return logs[:, self._labels.places], none
