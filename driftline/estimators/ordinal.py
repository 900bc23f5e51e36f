r"""Ordered levels, on a stream.

Scores :math:`\theta_1, \dots, \theta_{K-1}` are those of the steps between neighbouring levels:
:math:`\theta_k = \ln p_k / p_{k-1}` (adjacent-category logits), so that the most probable
level is the one whose encoding has the highest score.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftline.committee.pooling import log_chances
from driftline.errors import InputError
from driftline.estimators.classifying import RowClassifier
from driftline.estimators.labels import Labels, different
from driftline.tasks import Ordinal
from driftline.typing import Inputs, Json

__all__ = ["DriftOrdinalClassifier"]


@dataclass(eq=False, repr=False)
class DriftOrdinalClassifier(RowClassifier):
    """Ordered levels, at the distance between them, on a stream that drifts.

    Parameters
    ----------
    learner, scaling, epochs, missing, categories, class_weight, dtype, random_state
        Those of :class:`~driftline.estimators.DriftClassifier`.
    levels
        All levels in their order, the lowest first. Default: the classes of the first rows (or
        those named by ``classes``) in sorted order, with a warning if they are words. No level can
        be added later.

    Examples
    --------
    >>> X = np.linspace(-1.0, 1.0, 100)[np.random.default_rng(0).permutation(100), np.newaxis]
    >>> y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    >>> model = DriftOrdinalClassifier(levels=["low", "middle", "high"]).fit(X, y)
    >>> model.predict([[-0.9], [0.0], [0.9]])
    array(['low', 'middle', 'high'], dtype='<U6')
    """

    _: KW_ONLY
    levels: npt.ArrayLike | None = None

    def _start(self, y: np.ndarray, classes: npt.ArrayLike | None) -> None:
        names = different(y)
        words = names if classes is None else np.union1d(names, different(classes))
        if self.levels is None and names.dtype.kind in "OU" and len(words) > 1:
            warnings.warn(
                f"levels are taken in the order of the alphabet, {', '.join(map(str, words[:6]))}"
                f"{', ...' if len(words) > 6 else ''}: name them from the lowest to the highest by "
                "`levels`",
                UserWarning,
                stacklevel=3,
            )
        if self.levels is not None:
            self._labels = Labels(self.levels)
            self._add_classes(y, classes)
        else:
            self._labels = Labels(names)
            if classes is not None:
                self._labels = Labels(np.union1d(self._labels.more(classes).names, classes))
        self.classes_ = self._labels.names
        self._begin_rows()

    @property
    def _task(self) -> Ordinal:
        """The task, with at least two levels."""
        return Ordinal(max(2, len(self._labels)))

    def _add_classes(self, y: np.ndarray, classes: npt.ArrayLike | None) -> None:
        for values in (y,) if classes is None else (y, classes):
            new = self._labels.new(different(values))
            if len(new):
                raise InputError(
                    f"{new.tolist()} are not among the levels {self._labels.names.tolist()}: name "
                    "all of them by `levels`, or in the first call of partial_fit by `classes`"
                )

    def _codes(self, y: np.ndarray) -> Any:
        return self._labels.codes(y)

    def _own(self, columns: np.ndarray) -> np.ndarray:
        if len(self._labels) == 1:
            return np.ones((len(columns), 1))
        return columns

    def _log_chances(self, X: Inputs) -> np.ndarray:
        logs = self._looking(log_chances, X)
        return np.zeros((len(logs), 1)) if len(self._labels) == 1 else logs

    def _from_plain(self, fitted: Json) -> None:
        super()._from_plain(fitted)
        self.classes_ = self._labels.names
