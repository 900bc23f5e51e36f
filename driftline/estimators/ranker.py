"""Documents in order of relevance, on a stream of queries."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from driftline.committee import Committee
from driftline.errors import InputError
from driftline.estimators.base import DriftEstimator, validated
from driftline.estimators.queries import starts_of
from driftline.inputs import WIDE
from driftline.tasks import NDCG, whole_numbers
from driftline.typing import Inputs, Labels

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["DriftRanker"]


@dataclass(eq=False, repr=False)
class DriftRanker(DriftEstimator):
    """Rank the documents of every query, under NDCG, on a stream that drifts.

    A row is a document, its label a relevance grade 0, 1, 2 and so on. A query is a round: its rows
    are consecutive, and given by an id for every row (``qid``) or by the sizes of all queries
    (``group``); scikit-learn's ``load_svmlight_file(..., query_id=True)`` returns all three.
    Features may be of any scale: documents are standardised online. CSR matrices of more than 1024
    columns, such as hashed words, stay sparse; narrower ones are made dense, to be centred.

    Parameters
    ----------
    learner
        ``"auto"``, ``"paper"``, or a function from a task to a learner.
    scaling
        Whether inputs are standardised as they come, for learners given by name.
    max_relevance
        The highest grade there can be. Default: that of the first rows, 1 at least.
    gain, cutoff
        Those of :class:`~driftline.tasks.NDCG`.
    epochs
        How often ``fit`` goes through the queries.
    random_state
        The seed of the learner's random numbers, a ``RandomState``, or None for seed 0.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X, qid = generator.standard_normal((600, 4)), np.repeat(np.arange(100), 6)
    >>> y = (X[:, 0] > 0.5).astype(int) + (X[:, 0] > 1.0)
    >>> model = DriftRanker().fit(X, y, qid=qid)
    >>> model.rank(X[:6], qid=qid[:6]).shape, bool(model.score(X, y, qid=qid) > 0.95)
    ((6,), True)
    """

    _: KW_ONLY
    max_relevance: int | None = None
    gain: str = "linear"
    cutoff: int | None = None

    def fit(
        self,
        X: Inputs,
        y: Labels,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Start anew, and learn from queries in their order: that of the stream.

        There is a sample weight for each query, not for each row.
        """
        given = self._checked(X, y, qid, group, reset=True)
        return self._learn_rounds(given, sample_weight, passes=self.epochs)

    def partial_fit(
        self,
        X: Inputs,
        y: Labels,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Go on learning from queries in their order."""
        first = "learner_" not in self.__dict__
        return self._learn_rounds(self._checked(X, y, qid, group, reset=first), sample_weight)

    def predict(self, X: Inputs) -> np.ndarray:
        """Return a score for every row: high ones come first.

        It is the weighted mean of the members' scores. Scores of different queries are not trained
        to be comparable.
        """
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, reset=False)
        rows = X.toarray() if issparse(X) and X.shape[1] <= WIDE else X
        learner = self.learner_
        if not isinstance(learner, Committee):
            return learner.scores(rows)
        scores = np.array([member.scores(rows) for member in learner.members])
        return learner.weights @ scores

    def rank(
        self, X: Inputs, *, qid: npt.ArrayLike | None = None, group: npt.ArrayLike | None = None
    ) -> np.ndarray:
        """Return the rank of every row within its query, from 0; equal scores keep their order."""
        scores = self.predict(X)
        ranks = np.empty(len(scores), dtype=np.int64)
        for start, stop in _pairs(starts_of(len(scores), qid, group)):
            order = np.argsort(-scores[start:stop], kind="stable")
            ranks[start + order] = np.arange(stop - start)
        return ranks

    def score(
        self,
        X: Inputs,
        y: Labels,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
    ) -> float:
        """Return the mean NDCG of all queries that have a relevant document; 1 if none has."""
        ranks, task = self.rank(X, qid=qid, group=group), self.learner_.task
        grades = whole_numbers(y, "grades")
        if grades.shape != ranks.shape:
            raise InputError(f"expected {len(ranks)} grades, but their shape is {grades.shape}")
        pairs = [slice(*pair) for pair in _pairs(starts_of(len(ranks), qid, group))]
        asked = [pair for pair in pairs if not task.geometry.idle(grades[pair])]
        losses = [task.loss(ranks[pair], grades[pair]) for pair in asked]
        return 1.0 - float(np.mean(losses)) if losses else 1.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _codes(self, y: list[np.ndarray]) -> list[np.ndarray]:
        if (highest := max(int(g.max()) for g in y)) > self._highest:
            raise InputError(
                f"a grade is {highest}, but the highest was {self._highest} so far: set "
                "max_relevance"
            )
        return y

    def _start(self, y: list[np.ndarray], classes: None) -> None:
        highest = self.max_relevance
        if highest is None:
            highest = max(1, *(int(g.max()) for g in y))
        self._highest = highest
        self._begin(self._task, scaling=self.scaling)

    @property
    def _task(self) -> NDCG:
        return NDCG(self._highest, gain=self.gain, cutoff=self.cutoff)

    def _to_plain(self) -> int:
        return int(self._highest)

    def _from_plain(self, fitted: Any) -> None:
        self._highest = int(fitted)

    def _checked(
        self,
        X: Inputs,
        y: Labels,
        qid: npt.ArrayLike | None,
        group: npt.ArrayLike | None,
        reset: bool,
    ) -> tuple[Inputs, list[np.ndarray]]:
        """Return all queries as a task takes them, and their grades."""
        X, y = validated(self, X, y, dtype=np.float64, reset=reset)
        grades, starts = whole_numbers(y, "grades"), starts_of(len(y), qid, group)
        return (X, starts), [grades[start:stop] for start, stop in _pairs(starts)]


def _pairs(starts: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
