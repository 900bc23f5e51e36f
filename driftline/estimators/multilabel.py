"""Several tags at once, on a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, column_or_1d

from driftline.committee.pooling import generator, tag_chances, tagged
from driftline.errors import InputError
from driftline.estimators.classifying import RowClassifier
from driftline.estimators.labels import Labels, different
from driftline.tasks import Multilabel
from driftline.typing import CheckedLabels, Inputs, Json
from driftline.typing import Labels as Given

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["DriftMultilabelClassifier"]


class DriftMultilabelClassifier(RowClassifier):
    """Any set of tags for every row, under the Hamming loss, on a stream that drifts.

    Labels are rows of zeros and ones, an array or a sparse matrix; ``predict`` returns such rows,
    and ``predict_proba`` the probability of every tag by itself. A vector of classes is taken as
    well, as one tag for each; then ``predict`` returns the class whose tag is most probable. The
    tags are those of the first rows: none can be added later.

    Parameters are those of :class:`~driftline.estimators.DriftClassifier`.

    >>> from driftline.streams import Planted
    >>> stream = Planted(Multilabel(4), rounds=1000, features=8, flips=0, seed=0)
    >>> model = DriftMultilabelClassifier().partial_fit(stream.inputs, stream.labels)
    >>> model.predict(stream.inputs[:2]).shape, model.predict_proba(stream.inputs[:2]).shape
    ((2, 4), (2, 4))
    >>> bool((model.predict(stream.inputs) == stream.labels).mean() > 0.9)
    True
    """

    _multi_output = True
    _labels: Labels | None  # None where labels are tags

    def predict(self, X: Inputs) -> np.ndarray:
        """Return the tags that are more probable than not, or the most probable class."""
        check_is_fitted(self)
        if self._labels is not None:
            return super().predict(X)
        return (self.decision_function(X) > 0.0).astype(np.int64)

    def predict_proba(self, X: Inputs) -> np.ndarray:
        """Return the probability of every tag; for classes, these normalised to sum to 1."""
        return np.exp(self._log_chances(X))

    def decision_function(self, X: Inputs) -> np.ndarray:
        """Return the log-odds of every tag; for classes, as other classifiers do."""
        check_is_fitted(self)
        if self._labels is not None:
            return super().decision_function(X)
        yes, no = self._log_odds(X)
        return yes - no

    def decoding_distribution(self, X: Inputs) -> np.ndarray:
        """Return the probability with which the learner's own decoder predicts each tag.

        This is the randomized decoder of theorem 1, as for other classifiers; the expected Hamming
        loss depends only on the probability of every tag. For classes, tags are those of
        ``classes_``, in this order.
        """
        return self._own(self._looking(tagged, X))

    def sample_predict(
        self, X: Inputs, rng: int | np.random.Generator | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Draw rows of zeros and ones, by one uniform number a row."""
        chances = self.decoding_distribution(X)
        uniforms = generator(rng).random((len(chances), 1))
        return (uniforms < chances).astype(np.int64)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def _start(self, y: Given, classes: npt.ArrayLike | None) -> None:
        if _are_tags(y):
            self._labels, self.classes_ = None, np.arange(y.shape[1])
        else:
            y = _vector(y)
            names = Labels(different(y if classes is None else classes))
            self._labels = names.more(np.unique(y))
            self.classes_ = self._labels.sorted
        self._begin_rows()

    @property
    def _task(self) -> Multilabel:
        return Multilabel(len(self.classes_))

    def _add_classes(self, y: Given, classes: npt.ArrayLike | None) -> None:
        known = len(self.classes_)
        if self._labels is None:
            if not _are_tags(y) or y.shape[1] != known:
                raise InputError(
                    f"expected rows of zeros and ones for {known} tags, but the labels have shape "
                    f"{y.shape}"
                )
            return
        new = self._labels.new(np.unique(_vector(y)))
        if len(new):
            raise InputError(
                f"classes {new.tolist()} are new, but tags cannot be added: name all in the first "
                "call of partial_fit by `classes`"
            )

    def _codes(self, y: Given) -> np.ndarray:
        if self._labels is not None:
            return np.eye(len(self._labels), dtype=np.int64)[self._labels.codes(_vector(y))]
        return np.asarray(y.toarray() if issparse(y) else y).astype(np.int64)

    def _class_codes(self, codes: CheckedLabels) -> np.ndarray:
        if self._labels is None:
            raise InputError("class_weight is for rows of one class each, not for rows of tags")
        return np.asarray(codes).argmax(axis=1)

    def _plain_codes(self, y: Given, count: int) -> CheckedLabels | None:
        if self._labels is not None:
            codes = super()._plain_codes(y, count)
            return None if codes is None else np.eye(len(self._labels), dtype=np.int64)[codes]
        good = type(y) is np.ndarray and y.shape == (count, len(self.classes_))
        return y if good and y.dtype.kind in "iub" else None

    def _own(self, columns: np.ndarray) -> np.ndarray:
        return columns if self._labels is None else columns[:, self._labels.places]

    def _log_odds(self, X: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithms of every tag's probability, and of that of its absence."""
        return self._looking(tag_chances, X)

    def _log_chances(self, X: Inputs) -> np.ndarray:
        yes, _ = self._log_odds(X)
        if self._labels is None:
            return yes
        return self._own(yes - np.logaddexp.reduce(yes, axis=1, keepdims=True))

    def _to_plain(self) -> Json | int:
        return len(self.classes_) if self._labels is None else self._labels.to_plain()

    def _from_plain(self, fitted: Json | int) -> None:
        if isinstance(fitted, dict):
            super()._from_plain(fitted)
        else:
            tags = getattr(self.learner_.task, "dim", None)
            if fitted != tags:
                raise InputError(f"the learner knows {tags} tags, but the estimator {fitted!r}")
            self._labels, self.classes_ = None, np.arange(tags)


def _are_tags(y: Given) -> bool:
    """Say whether labels are rows of zeros and ones, and refuse other rows."""
    if y.ndim != 2 or (y.shape[1] == 1 and not issparse(y)):
        return False
    try:
        entries = np.unique(y.data if issparse(y) else y).tolist()
    except TypeError as error:
        raise InputError(f"labels must be rows of zeros and ones: {error}") from error
    if not set(entries) <= {0, 1}:
        raise InputError(
            f"labels of shape {y.shape} must be rows of zeros and ones, but entries are among "
            f"{entries[:5]}"
        )
    return True


def _vector(y: Given) -> np.ndarray:
    vector: np.ndarray = column_or_1d(y, warn=True)
    different(vector)
    return vector
