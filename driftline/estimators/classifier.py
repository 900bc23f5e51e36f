"""Classification of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from driftline.committee.pooling import log_chances
from driftline.committee.row_chances import chances_of
from driftline.errors import InputError
from driftline.estimators.classifying import ClassWeight, RowClassifier
from driftline.estimators.labels import Labels, different
from driftline.estimators.making import How
from driftline.sets import Adaptive
from driftline.tasks import Multiclass
from driftline.typing import Inputs

__all__ = ["DriftClassifier"]


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
    class_weight
        None for classes that count alike row by row; ``"balanced"`` for weights by how rare a class
        has been so far, ``n / (K n_k)`` and at most 100, so that classes count alike in total; or a
        weight for each class, 1 where none is given.
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
    """

    def __init__(
        self,
        learner: How = "auto",
        *,
        scaling: bool = True,
        epochs: int = 1,
        missing: str = "refuse",
        class_weight: ClassWeight = None,
        dtype: npt.DTypeLike = "float64",
        random_state: int | np.random.RandomState | None = None,
        coverage: float | None = None,
    ):
        super().__init__(
            learner,
            scaling=scaling,
            epochs=epochs,
            missing=missing,
            class_weight=class_weight,
            dtype=dtype,
            random_state=random_state,
        )
        self.coverage = coverage

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
            self.learner_ = self.learner_.grown(classes=self._task.classes)

    @property
    def _task(self) -> Multiclass:
        """The task, with at least two classes: beside a single one there is an unnamed class."""
        return Multiclass(max(2, len(self._labels)))

    def _codes(self, y: np.ndarray) -> Any:
        return self._labels.codes(y)

    def _own(self, columns: np.ndarray) -> np.ndarray:
        if len(self._labels) == 1:
            return np.ones((len(columns), 1))
        return columns[:, self._labels.places]

    def _log_chances(self, X: Inputs) -> np.ndarray:
        logs = self._looking(log_chances, X)
        if len(self._labels) == 1:
            return np.zeros((len(logs), 1))
        return logs[:, self._labels.places]
