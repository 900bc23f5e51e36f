r"""How good orders of documents are: NDCG and mean reciprocal rank.

With gains :math:`g_i`, :math:`r(i)` the rank of document i by score, from 0, and a cutoff k,

.. math:: \mathrm{NDCG@}k = \frac{\sum_{r(i) < k} g_i / \log_2(r(i) + 2)}
   {\max_{r'} \sum_{r'(i) < k} g_i / \log_2(r'(i) + 2)}, \qquad
   \mathrm{MRR@}k = \frac1{1 + \min_{g_i > 0} r(i)},

which is 0 if no relevant document stands below k. Both are means over queries that have a relevant
document; equal scores keep the order of their rows.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.estimators.queries import starts_of
from driftline.tasks import NDCG, real_numbers, whole_numbers

__all__ = ["RankingScores", "ranking_scores"]


class RankingScores(NamedTuple):
    """NDCG and mean reciprocal rank over queries with a relevant document, and their number."""

    ndcg: float
    mrr: float
    queries: int


def ranking_scores(
    grades: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    qid: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    cutoff: int | None = None,
    gain: str = "linear",
) -> RankingScores:
    """Return NDCG and MRR of documents sorted by score, high ones first, within each query.

    Rows of a query are consecutive, and given by ``qid`` or ``group`` as for
    :class:`~driftline.DriftRanker`, whose ``predict`` returns such scores. A grade above 0 is
    relevant. Without any relevant document both are 1.

    >>> ranking_scores([0, 1, 0, 2], [0.3, 0.1, 0.2, 0.4], qid=[7, 7, 8, 8], cutoff=10).mrr
    0.75

    References
    ----------
    Jarvelin and Kekalainen (2002), *Cumulated gain-based evaluation of IR techniques*; Voorhees
    (1999), *The TREC-8 question answering track report*.
    """
    relevance, theirs = whole_numbers(grades, "grades"), real_numbers(scores, "scores")
    if relevance.ndim != 1 or relevance.shape != theirs.shape:
        raise InputError(
            f"expected a grade and a score for every row, but their shapes are {relevance.shape} "
            f"and {theirs.shape}"
        )
    if not np.isfinite(theirs).all():
        raise InputError("scores must be finite, but one is not")
    task = NDCG(max(1, int(relevance.max(initial=1))), cutoff=cutoff, gain=gain)
    gains, reciprocal = [], []
    starts = starts_of(len(theirs), qid, group)
    for start, stop in itertools.pairwise(starts.tolist()):
        own = relevance[start:stop]
        if not own.any():
            continue
        ranks = task.best_prediction(theirs[start:stop])
        first = int(ranks[own > 0].min())
        gains.append(1.0 - task.loss(ranks, own))
        reciprocal.append(1.0 / (1 + first) if cutoff is None or first < cutoff else 0.0)
    if not gains:
        return RankingScores(1.0, 1.0, 0)
    return RankingScores(float(np.mean(gains)), float(np.mean(reciprocal)), len(gains))
