"""Plain rows: how they are checked, learned from, and predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from driftline.errors import InputError
from driftline.estimators.base import DriftEstimator, validated
from driftline.estimators.missing import check_fill, fill
from driftline.explanation import Explanation, explain
from driftline.learner import Balance, checked_weights
from driftline.typing import CheckedLabels, Inputs, Labels

__all__ = ["RowEstimator", "row_weights"]

#: The result of a function of rows.
Seen = TypeVar("Seen")

PRECISIONS = [np.float64, np.float32]


class RowEstimator(DriftEstimator):
    """Base of estimators with one row of inputs a round: an array or a CSR matrix."""

    missing: str
    categories: dict[int, int] | None
    dtype: npt.DTypeLike

    #: Whether a row may have several labels at once.
    _multi_output = False

    def explain(self, X: Inputs | None = None) -> Explanation:
        """Say which features matter most, and how probabilities depend on them.

        Parameters
        ----------
        X
            Rows whose predictions are explained, 2 or more. Default: the last ones that a
            learner keeps. See :func:`driftline.explain`.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        rows = None if X is None else self._looking(lambda _, checked: checked, X)
        return explain(self.learner_, rows, names=names, labels=self._outcomes)

    @property
    def _outcomes(self) -> Sequence[object]:
        """Names of what is predicted, in the order in which the learner knows them."""
        raise NotImplementedError

    def _begin_rows(self) -> None:
        options = {"scaling": self.scaling, "dtype": self.dtype, "categories": self.categories}
        self._begin(self._task, **options)
        self._means = self._balance = self._level = None

    def _checked(self, X: Inputs, y: Labels, reset: bool) -> tuple[Inputs, np.ndarray]:
        """Return rows and labels after all checks; missing cells are still NaN."""
        check_fill(self.missing)
        options = {"dtype": PRECISIONS, "reset": reset, "multi_output": self._multi_output}
        X, y = validated(self, X, y, **options, **self._finite)
        return X, y

    @property
    def _finite(self) -> dict[str, object]:
        """What scikit-learn is told of cells that are NaN."""
        return {} if self.missing == "refuse" else {"ensure_all_finite": "allow-nan"}

    def _learn(self, X: Inputs, codes: CheckedLabels, sample_weight: np.ndarray | None) -> None:
        """Fill missing cells in and learn from rows; if they are refused, nothing changes."""
        filled, means = self._filled(X, learning=True)
        weights, balance = self._weights(codes, sample_weight)
        rows, level = self._alike(filled), self._level
        if level is None:
            self.learner_.learn_rows(rows, codes, weights)
        else:
            trace = self.learner_.run(
                rows, codes, audit=False, sample_weight=weights, probabilities=True
            )
        self._means, self._balance = means, balance
        if level is not None:
            level.play(trace.probabilities, np.asarray(codes, dtype=np.int64))

    def _weights(
        self, codes: CheckedLabels, sample_weight: np.ndarray | None
    ) -> tuple[np.ndarray | None, Balance | None]:
        """Return the weights of rows, None if all are 1, and the counts of classes after them."""
        return sample_weight, None

    def _learn_plain(self, X: Inputs, y: Labels) -> bool:
        """Learn from rows that need no checks by scikit-learn; return whether that was so.

        These checks would take far longer than one round. If it returns False nothing was learned:
        the caller then checks the rows, and the checks report what is wrong.
        """
        if self._level is not None or not self._plain(X):
            return False
        codes = self._plain_codes(y, len(X))
        if codes is None:
            return False
        try:
            weights, balance = self._weights(codes, None)
            if weights is not None:
                self.learner_.learn_rows(X, codes, weights)
                self._balance = balance
            elif len(codes) == 1:
                self.learner_.learn_row(X[0], codes[0])
            else:
                self.learner_.learn_rows(X, codes)
        except InputError:
            return False
        return True

    def _plain_codes(self, y: Labels, count: int) -> CheckedLabels | None:
        """Return labels as the learner takes them; None if they need scikit-learn's checks."""
        raise NotImplementedError

    def _plain(self, X: Inputs) -> bool:
        """Return whether rows need no conversion, and have the known number of features."""
        known = self.__dict__
        if self.missing == "mean":  # every row counts
            return False
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2:
            return False
        if X.shape[1] != known["n_features_in_"] or "feature_names_in_" in known or not len(X):
            return False
        standardiser = known["learner_"]._standardiser
        return standardiser is None or not standardiser.sparse

    def _looking(self, look: Callable[..., Seen], X: Inputs, *rest: object) -> Seen:
        """Call a function with the learner and rows to predict; nothing is learned."""
        check_is_fitted(self)
        if self._plain(X):
            try:
                return look(self.learner_, X, *rest)
            except InputError:
                pass  # scikit-learn's checks below raise its own error
        X = validated(self, X, dtype=PRECISIONS, reset=False, **self._finite)
        X, _ = self._filled(X, learning=False)
        return look(self.learner_, self._alike(X), *rest)

    def _filled(self, X: Inputs, learning: bool) -> tuple[Inputs, np.ndarray | None]:
        """Return rows in which nothing is missing, and means after them; no category is -1."""
        made, means = fill(X, self.missing, self._means, learning)
        if made is not X and self.categories and not issparse(X):
            columns = list(self.categories)
            made[:, columns] = np.where(np.isnan(X[:, columns]), -1.0, X[:, columns])
        return made, means

    def _alike(self, X: Inputs) -> Inputs:
        """Return rows in the form, dense or sparse, in which they are mapped."""
        made = self.learner_._standardiser
        if made is None or made.features is None or made.sparse == issparse(X):
            return X
        return csr_array(X) if made.sparse else X.toarray()


def row_weights(
    sample_weight: npt.ArrayLike | None, X: Inputs, begun: bool = False
) -> np.ndarray | None:
    """Return a sample weight for each row, after scikit-learn's checks and ours; None if none.

    All may be 0 where a stream goes on, which scikit-learn refuses.
    """
    if sample_weight is None:
        return None
    try:
        given = _check_sample_weight(sample_weight, X, dtype=np.float64)
    except ValueError:
        given = np.asarray(sample_weight)
        if not begun or given.dtype.kind not in "fiub" or given.any():
            raise
    return checked_weights(given, X.shape[0])
