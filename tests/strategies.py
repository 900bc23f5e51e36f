"""What hypothesis draws from: scores, ordinary and adversarial."""

import itertools

import numpy as np
from hypothesis import strategies as st

import driftline as dl


def committee_by(combine, task, **given):
    """The default line-up of a task, combined by a rule."""
    made = dl.auto(task, combine="vote", **{"effort": "fast", **given})
    return dl.Committee(made.combined, combine, scaling=made.scaling)


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


def vectors(d):
    return [np.array(v) for v in itertools.product([0, 1], repeat=d)]


def orders(d):
    return [np.array(v) for v in itertools.permutations(range(d))]


#: Every task with all of its labels and its target loss, written plainly.
TASKS = {
    "multilabel": (dl.tasks.Multilabel(4), vectors(4), lambda p, y: np.mean(p != y)),
    "one tag": (dl.tasks.Multilabel(1), vectors(1), lambda p, y: np.mean(p != y)),
    "fixed size": (
        dl.tasks.FixedSize(5, 2),
        [v for v in vectors(5) if v.sum() == 2],
        lambda p, y: np.mean(p != y),
    ),
    "ordinal": (dl.tasks.Ordinal(5), list(range(5)), lambda p, y: abs(p - y) / 4),
    "ranking": (
        dl.tasks.LabelRanking(4),
        orders(4),
        lambda p, y: ((p - y) ** 2).sum() / 2 / (4 * 15 / 6),
    ),
    "matching": (dl.tasks.Matching(3), orders(3), lambda p, y: np.mean(p != y)),
    "signs": (dl.tasks.Binary(), [-1, 1], lambda p, y: float(p != y)),
    "classes": (dl.tasks.Multiclass(4), list(range(4)), lambda p, y: float(p != y)),
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
