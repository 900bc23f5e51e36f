"""Rounds a second of every structure, how they grow with its size, and bare loops beside them.

``python -m benchmarks.structures`` prints them alone; they are part of ``make bench``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit

import driftline as dl
from benchmarks.timing import best_times

T, L = dl.tasks, dl.losses
Row = tuple[str, str, float, str, float | None]


def distances(classes: int) -> Any:
    """Return classes whose mistakes cost their distance."""
    levels = np.arange(classes)
    return T.CostSensitive(np.abs(np.subtract.outer(levels, levels)) / (classes - 1))


#: Rounds a second of one learner on a quiet core that are asked for; auto has a sixth of them.
GOALS = {
    "levels, 5": (T.Ordinal(5), 300_000),
    "sets, 3 of 10": (T.FixedSize(10, 3), 200_000),
    "rankings, 5": (T.LabelRanking(5), 200_000),
    "rankings, 20": (T.LabelRanking(20), 80_000),
    "matchings, 5": (T.Matching(5), 40_000),
    "matchings, 10": (T.Matching(10), 20_000),
    "F1, 8 tags": (T.FScore(8), 500),
    "F1, 14 tags": (T.FScore(14), 100),
}

#: Sizes of which the slope is measured, and the power of the size that theory gives.
SIZES: dict[str, tuple[Callable[[int], Any], tuple[int, int], str]] = {
    "levels": (T.Ordinal, (8, 64), "1"),
    "sets of a third": (lambda d: T.FixedSize(d, d // 3), (9, 72), "1 to 2"),
    "rankings": (T.LabelRanking, (8, 64), "1"),
    "matchings": (T.Matching, (5, 20), "3 and more"),
    "costs by distance": (distances, (5, 20), "3"),
    "F1": (T.FScore, (4, 16), "4"),
}


def stream_of(task: Any, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels, some thousand again and again."""
    stream = dl.streams.Planted(task, rounds=4000, flips=4, noise=0.1, seed=0)
    times = -(-rounds // 4000)
    labels = np.tile(stream.labels, (times, *(1,) * (np.ndim(stream.labels) - 1)))
    return np.tile(stream.inputs, (times, 1))[:rounds], labels[:rounds]


def learner_of(task: Any) -> Callable[[], dl.OGD]:
    """Return the maker of a learner with a guarantee: SparseMAP and nearest-vertex decoding.

    Tasks whose predictions are not their labels have the convolutional loss.
    """
    if task.kind in ("f-score", "costs"):
        return lambda: dl.OGD(L.ConvolutionalFenchelYoung(task))
    ratio = L.SparseMAP(task).nearest_vertex_ratio
    assert ratio is not None
    loss = L.SparseMAP(task, 2.0 * ratio)
    return lambda: dl.OGD(loss)


def enough(play: Callable[[int], object], least: float = 0.2) -> int:
    """Return how many rounds take long enough to be timed."""
    rounds = 100
    while rounds < 2_000_000:
        if best_times({"": lambda rounds=rounds: play(rounds)}, repeats=1)[""] >= least:
            break
        rounds *= 2
    return rounds


def speed(make: Callable[[], Any], task: Any) -> float:
    """Return rounds a second, the best of three runs of at least 0.2 seconds."""
    inputs, labels = stream_of(task, 4000)

    def play(rounds: int) -> None:
        X, y = (inputs, labels) if rounds <= 4000 else stream_of(task, rounds)
        make().run(X[:rounds], y[:rounds])

    rounds = enough(play)
    X, y = stream_of(task, rounds)
    return rounds / best_times({"": lambda: make().run(X, y)}, repeats=3)[""]


def structures() -> Iterator[Row]:
    """Time one learner and auto, and divide by what is asked for."""
    for name, (task, goal) in GOALS.items():
        one = speed(learner_of(task), task)
        yield "structures", f"{name}: rounds a second / {goal:,}", one / goal, ">= 1", one
        six = speed(lambda task=task: dl.auto(task), task)
        yield "structures", f"{name}: auto / a sixth of that", 6 * six / goal, ">= 1", six
    matching = T.Matching(5)
    loss = L.ConvolutionalFenchelYoung(matching, dl.regularizers.Quadratic(1.0))
    one = speed(lambda: dl.OGD(loss), matching)
    what = "convolutional matchings, 5: rounds a second / 3,000"
    yield "structures", what, one / 3000, ">= 1", one


def slopes() -> Iterator[Row]:
    """By which power of its size a round grows."""
    for name, (make, (small, large), power) in SIZES.items():
        slow, fast = (speed(learner_of(make(size)), make(size)) for size in (large, small))
        slope = np.log(fast / slow) / np.log(large / small)
        yield "structures", f"{name}: power of the size, {small} to {large}", slope, power, slow


@njit
def bare_levels(X, y, levels, step):
    """Pool, clip and step: the levels' round by hand, without decoder, rate or record."""
    rounds, features = X.shape
    d = levels - 1
    W = np.zeros((d, features))
    means, sizes = np.empty(d), np.empty(d)
    for t in range(rounds):
        theta = W @ X[t]
        blocks = 0
        for i in range(d):
            means[blocks], sizes[blocks] = theta[i], 1.0
            blocks += 1
            while blocks > 1 and means[blocks - 2] <= means[blocks - 1]:
                size = sizes[blocks - 2] + sizes[blocks - 1]
                both = means[blocks - 2] * sizes[blocks - 2] + means[blocks - 1] * sizes[blocks - 1]
                means[blocks - 2], sizes[blocks - 2] = both / size, size
                blocks -= 1
        i = 0
        for block in range(blocks):
            for _ in range(int(sizes[block])):
                target = 1.0 if i < y[t] else -1.0
                slope = min(1.0, max(-1.0, means[block])) - target
                for j in range(features):
                    W[i, j] -= step * slope * X[t, j]
                i += 1
    return W


def numpy_rankings(X: np.ndarray, ranks: np.ndarray, step: float = 0.1) -> np.ndarray:
    """Play pairwise logistic steps in plain NumPy, as one would without a library."""
    items = ranks.shape[1]
    W = np.zeros((items, X.shape[1]))
    for x, rank in zip(X, ranks, strict=True):
        theta = W @ x
        better = rank[:, np.newaxis] < rank
        pull = better / (1.0 + np.exp(theta[:, np.newaxis] - theta))
        W += step * np.outer(pull.sum(axis=1) - pull.sum(axis=0), x)
    return W


def beside() -> Iterator[Row]:
    """Beside a bare compiled loop, and beside NumPy."""
    task = T.Ordinal(5)
    X, y = stream_of(task, 200_000)
    make = learner_of(task)
    times = best_times(
        {"run": lambda: make().run(X, y), "bare": lambda: bare_levels(X, y, 5, 0.1)}, repeats=3
    )
    what = "levels, 5: time / bare loop of projection and step"
    yield "structures", what, times["run"] / times["bare"], "", len(y) / times["run"]
    for items in (5, 20):
        ranking = T.LabelRanking(items)
        X, y = stream_of(ranking, 20_000)
        made = learner_of(ranking)
        given = {
            "run": lambda X=X, y=y, made=made: made().run(X, y),
            "auto": lambda X=X, y=y, task=ranking: dl.auto(task).run(X, y),
            "numpy": lambda X=X, y=y: numpy_rankings(X[:2000], y[:2000]),
        }
        times = best_times(given, repeats=3)
        for who in ("run", "auto"):
            ratio = 10.0 * times["numpy"] / times[who]
            what = f"rankings, {items}: {who} / NumPy pairwise loop"
            yield "structures", what, ratio, ">= 1", len(y) / times[who]


def tagged(tags: int, length: int, rounds: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return sequences whose tags go up by one or two, seen through noise."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((tags, 10))
    steps = np.arange(length) * rng.integers(1, 3, (rounds, 1))
    labels = (rng.integers(tags, size=(rounds, 1)) + steps) % tags
    inputs = centres[labels] + rng.standard_normal((rounds, length, 10))
    return list(inputs / np.sqrt(10 * length)), list(labels)


def tagging() -> Iterator[Row]:
    """Time SparseMAP with transitions; a plain engine with Frank-Wolfe had 230, 9 and 2."""
    for tags, length, rounds, goal in ((5, 8, 4000, 5000), (26, 8, 1000, 200), (10, 50, 500, 100)):
        inputs, labels = tagged(tags, length, rounds)
        make = learner_of(T.Sequence(tags))
        make().run(inputs[:2], labels[:2])
        given = {"": lambda X=inputs, y=labels, make=make: make().run(X, y)}
        one = rounds / best_times(given, repeats=3)[""]
        what = f"SparseMAP, {length} of {tags} tags: rounds a second / {goal:,}"
        yield "structures", what, one / goal, ">= 1", one


def queries(documents: int, rounds: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return queries of made-up documents with five grades."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((rounds, documents, 10))
    scores = inputs @ rng.standard_normal(10) + rng.standard_normal((rounds, documents))
    return list(inputs), list(np.digitize(scores, [0.0, 2.0, 4.0, 6.0]))


def numpy_pairs(inputs: list[np.ndarray], labels: list[np.ndarray], step: float = 0.01) -> None:
    """Play pairwise logistic steps on documents in plain NumPy."""
    w = np.zeros(inputs[0].shape[1])
    for X, y in zip(inputs, labels, strict=True):
        theta = X @ w
        apart = np.minimum(theta[:, np.newaxis] - theta, 700.0)
        pull = (y[:, np.newaxis] > y) / (1.0 + np.exp(apart))
        w += step * (pull.sum(axis=1) - pull.sum(axis=0)) @ X


def documents() -> Iterator[Row]:
    """Time auto on queries, beside a NumPy pairwise loop."""
    task = T.NDCG(max_relevance=4, cutoff=10)
    for size, rounds in ((15, 10_000), (120, 1000), (1000, 30)):
        inputs, labels = queries(size, rounds)
        given = {
            "auto": lambda X=inputs, y=labels: dl.auto(task).run(X, y),
            "numpy": lambda X=inputs, y=labels: numpy_pairs(X, y),
        }
        times = best_times(given, repeats=3)
        what = f"queries of {size}: auto / NumPy pairwise loop"
        yield "documents", what, times["numpy"] / times["auto"], ">= 1", rounds / times["auto"]


def main() -> None:
    for part in (structures, slopes, beside, tagging, documents):
        for _, what, ratio, goal, rate in part():
            print(f"{what:56} {ratio:8.3g} {goal:>12} {rate:14,.0f}", flush=True)


if __name__ == "__main__":
    main()
