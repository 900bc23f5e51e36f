"""What hypothesis draws from: scores, ordinary and adversarial."""

import itertools

import numpy as np
from hypothesis import strategies as st

import driftline as dl

T = dl.tasks


def committee_by(combine, task, **given):
    """The default line-up of a task, combined by a rule."""
    made = dl.auto(task, combine="vote", **{"effort": "fast", **given})
    return dl.Committee(made.combined, combine)


def scores(dim):
    """Scores of all sizes, with ties, near-ties, and a few large ones."""
    small = st.floats(-5, 5)
    special = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-9, -1e-9, 30.0, -30.0, 700.0])
    free = st.lists(st.one_of(small, special), min_size=dim, max_size=dim)
    level = st.builds(
        lambda value, count: [value] * min(count, dim) + [-50.0] * (dim - min(count, dim)),
        small,
        st.integers(1, dim),
    )
    return st.one_of(free, level).map(lambda values: np.array(values, dtype=np.float64))


def adversarial_scores(dim, generator, count):
    """Random scores at many scales, and ties of every number of labels."""
    for scale in (0.01, 0.3, 1.0, 3.0, 10.0, 40.0):
        yield from scale * generator.standard_normal((count, dim))
    for tied in range(1, dim + 1):
        for gap in (1e-6, 0.1, 0.5, 1.0, 2.0, 5.0, 60.0):
            theta = np.full(dim, -gap)
            theta[:tied] = 0.0
            yield theta


def bits(d):
    return [np.array(v) for v in itertools.product([0, 1], repeat=d)]


def orders(d):
    return [np.array(v) for v in itertools.permutations(range(d))]


def grades(d, low, high):
    return [np.array(v) for v in itertools.product(range(low, high + 1), repeat=d) if any(v)]


def choices(d, k):
    return [np.array(c) for c in itertools.combinations(range(d), k)]


def ndcg(weights, exponential=False):
    def loss(ranks, y):
        gains = 2.0**y - 1.0 if exponential else y.astype(float)
        best = np.sort(gains)[::-1] @ weights
        return 1.0 - sum(g * weights[r] for g, r in zip(gains, ranks, strict=True)) / best

    return loss


def f1(p, y):
    total = p.sum() + y.sum()
    return 1.0 - 2.0 * (p @ y) / total if total else 0.0


LOG = 1.0 / np.log2(np.arange(4) + 2.0)
COSTS = np.random.default_rng(0).random((4, 5)) * (1.0 - np.eye(4, 5))
COSTS -= COSTS.min(axis=1, keepdims=True)

#: Every task at a small size with all labels, all predictions, and its loss written plainly.
TASKS = {
    "classes": (T.Multiclass(4), range(4), range(4), lambda p, y: float(p != y)),
    "signs": (T.Binary(), [-1, 1], [-1, 1], lambda p, y: float(p != y)),
    "one tag": (T.Multilabel(1), bits(1), bits(1), lambda p, y: np.mean(p != y)),
    "tags": (T.Multilabel(4), bits(4), bits(4), lambda p, y: np.mean(p != y)),
    "sets": (
        T.FixedSize(4, 2),
        [v for v in bits(4) if v.sum() == 2],
        [v for v in bits(4) if v.sum() == 2],
        lambda p, y: np.mean(p != y),
    ),
    "2 of 5": (
        T.FixedSize(5, 2),
        [v for v in bits(5) if v.sum() == 2],
        [v for v in bits(5) if v.sum() == 2],
        lambda p, y: np.mean(p != y),
    ),
    "levels": (T.Ordinal(5), range(5), range(5), lambda p, y: abs(p - y) / 4),
    "rankings": (
        T.LabelRanking(4),
        orders(4),
        orders(4),
        lambda p, y: ((p - y) ** 2).sum() / 2 / (4 * 15 / 6),
    ),
    "matchings": (T.Matching(3), orders(3), orders(3), lambda p, y: np.mean(p != y)),
    "words": (
        T.Sequence(3, transitions=False),
        [np.array(v) for v in itertools.product(range(3), repeat=2)],
        [np.array(v) for v in itertools.product(range(3), repeat=2)],
        lambda p, y: np.mean(p != y),
    ),
    "chains": (T.Sequence(2), bits(3), bits(3), lambda p, y: np.mean(p != y)),
    "ndcg": (T.NDCG(2), grades(3, 0, 2), orders(3), ndcg(LOG[:3])),
    "ndcg of 4": (T.NDCG(1), grades(4, 0, 1), orders(4), ndcg(LOG)),
    "ndcg cut": (
        T.NDCG(2, cutoff=2),
        grades(4, 0, 2)[::3],
        orders(4),
        ndcg(LOG * [1, 1, 0, 0]),
    ),
    "ndcg exponential": (
        T.NDCG(2, gain="exponential", discount=(1.0, 0.4, 0.1), items=3),
        grades(3, 0, 2),
        orders(3),
        ndcg(np.array([1.0, 0.4, 0.1]), True),
    ),
    "ndcg from 1": (T.NDCG(3, lowest=1), grades(3, 1, 3), orders(3), ndcg(LOG[:3])),
    "ndcg of 1": (T.NDCG(2), grades(1, 0, 2), orders(1), ndcg(LOG[:1])),
    "precision": (
        T.PrecisionAtK(2),
        grades(4, 0, 1),
        choices(4, 2),
        lambda p, y: 1.0 - y[p].sum() / min(2, y.sum()),
    ),
    "precision of few": (
        T.PrecisionAtK(3),
        grades(2, 0, 1),
        choices(2, 2),
        lambda p, y: 0.0,
    ),
    "f1": (T.FScore(3), bits(3), bits(3), f1),
    "costs": (T.CostSensitive(COSTS), range(4), range(5), lambda p, y: COSTS[y, p]),
}


MULTICLASS = [dl.tasks.Multiclass(k) for k in (2, 3, 5, 10, 100)]
BINARY = dl.tasks.Binary()

CONVEX_LOSSES = [
    *(dl.losses.Logistic(task) for task in (*MULTICLASS, BINARY)),
    dl.losses.Logistic(dl.tasks.Multiclass(3), base=np.e),
    dl.losses.Logistic(dl.tasks.Multiclass(4), base=1.5),
    dl.losses.Logistic(BINARY, base=10.0),
    *(dl.losses.SmoothHinge(task) for task in (*MULTICLASS, BINARY)),
    dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(3)), 2.0),
    dl.losses.Scaled(dl.losses.SmoothHinge(dl.tasks.Multiclass(3)), 4.0),
    dl.losses.Scaled(dl.losses.SmoothHinge(BINARY), 0.7),
    dl.losses.Hinge(dl.tasks.Multiclass(3), kappa=1.0),
    dl.losses.Hinge(BINARY, kappa=1.0),
]
SELF_BOUNDING_LOSSES = [
    *(loss for loss in CONVEX_LOSSES if np.isfinite(loss.self_bound)),
    dl.losses.Hinge(dl.tasks.Multiclass(3), kappa=0.5),
    dl.losses.Hinge(dl.tasks.Multiclass(4), kappa=0.25),
    dl.losses.Hinge(BINARY, kappa=0.5),
]
ALL_LOSSES = [*CONVEX_LOSSES, *(x for x in SELF_BOUNDING_LOSSES if not x.convex)]

_BASES = [
    *(dl.losses.Logistic(task) for task in (*MULTICLASS, BINARY)),
    dl.losses.Logistic(dl.tasks.Multiclass(3), base=1.7),
    *(dl.losses.SmoothHinge(task) for task in (*MULTICLASS, BINARY)),
    dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(3)), 3.0),
    dl.losses.Scaled(dl.losses.SmoothHinge(dl.tasks.Multiclass(4)), 1.5),
    dl.losses.Scaled(dl.losses.Logistic(BINARY), 2.0),
]
DECODERS = [
    *(dl.decoders.UniformMix(loss) for loss in _BASES),
    *(dl.decoders.GapOptimal(loss) for loss in _BASES),
    dl.decoders.GapOptimal(dl.losses.Logistic(dl.tasks.Multiclass(5), base=3.0)),
    *(dl.decoders.StepOptimal(loss) for loss in _BASES),
    *(dl.decoders.Lazy(loss) for loss in _BASES if loss.nats is not None),
    dl.decoders.Lazy(dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(5), base=4.0), 2.0)),
    *(dl.decoders.Exploring(loss, step=0.2) for loss in _BASES),
    *(dl.decoders.NearestVertex(loss) for loss in _BASES if loss.ratio("nearest_vertex")),
    *(dl.decoders.Argmax(dl.losses.Scaled(loss, 2.0)) for loss in _BASES),
]
