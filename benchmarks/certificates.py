"""Speed and memory of certificates beside the runs they audit."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

import driftline as dl
from benchmarks.timing import best_times

GENERATOR = np.random.default_rng(0)


def audits():
    """Certify a run of a million rounds against a comparator of ten pieces."""
    rounds, classes, features = 1_000_000, 10, 50
    inputs = GENERATOR.standard_normal((rounds, features)) / np.sqrt(features)
    labels = GENERATOR.integers(0, classes, rounds)
    weights = GENERATOR.standard_normal((10, classes, features)) / 10
    comparator = dl.comparators.Piecewise(np.arange(10) * rounds // 10, weights)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(classes))
    trace = dl.OGD(loss).run(inputs, labels, seed=0)
    times = best_times(
        {
            "run": lambda: dl.OGD(loss).run(inputs, labels, seed=0),
            "certify": lambda: dl.certify(trace, comparator, inputs, labels, keep=False),
            "keep": lambda: dl.certify(trace, comparator, inputs, labels),
        },
        2,
    )
    what = "certify 1e6 rounds, K = 10, m = 50: time / run"
    yield "certify", what, times["certify"] / times["run"], "<= 2", rounds / times["certify"]
    yield "certify", "the same, keeping all rounds", times["keep"] / times["run"], "", None
    for count in (100_000, 200_000):
        short = dl.OGD(loss).run(inputs[:count], labels[:count], seed=0)
        one = dl.comparators.Fixed(weights[0])
        tracemalloc.start()
        dl.certify(short, one, inputs[:count], labels[:count], keep=False)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        yield "certify", f"peak memory at {count:,} rounds, megabytes", peak, "constant", None


def hindsight():
    """Find ten changes among a hundred candidates: 10 000 rounds, K = 3, m = 64."""
    stream = dl.streams.DigitTriples(rounds=10_000, flips=10, seed=0)
    loss = dl.losses.Logistic(stream.task)
    start = time.perf_counter()
    dl.certificates.best_piecewise(loss, stream, penalty=20.0, candidates=100)
    seconds = time.perf_counter() - start
    yield "hindsight", "best_piecewise, 100 candidates, seconds", seconds, "< 60", None
