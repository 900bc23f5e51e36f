"""Rounds of one learner beside bare loops, a NumPy loop and Vowpal Wabbit."""

from __future__ import annotations

import numpy as np

from benchmarks.made import dense_data, digits_data, learner, sparse_data
from benchmarks.references import (
    bare_dense,
    bare_sparse,
    numpy_loop,
    passes_dense,
    passes_sparse,
)
from benchmarks.timing import best_times
from benchmarks.wabbit import learning
from driftline.kernels import aligned_zeros

#: As many slots as the sparse stream has weights. As it comes, Vowpal Wabbit has room for an eighth
#: of them, lets the others collide, and is faster for it.
ROOMY = "-b 21"


def small():
    """Two classes, two features."""
    X, y = dense_data(200_000, 2, 2)
    rows, labels = list(X[:20_000]), y[:20_000].tolist()

    def steps():
        one = learner(2)
        for x, label in zip(rows, labels, strict=True):
            one.step(x, label)

    times = best_times(
        {
            "run": lambda: learner(2).run(X, y),
            "step": steps,
            "numpy": lambda: numpy_loop(X[:4000], y[:4000], 2),
        }
    )
    played = {"run": 200_000, "step": 20_000, "numpy": 4000}
    rates = {name: played[name] / t for name, t in times.items()}
    yield "small", "run / NumPy loop", rates["run"] / rates["numpy"], ">= 100", rates["run"]
    yield "small", "step / NumPy loop", rates["step"] / rates["numpy"], "", rates["step"]
    yield "small", "step / 100 000 rounds a second", rates["step"] / 1e5, ">= 1", rates["step"]
    yield "small", "NumPy loop", 1.0, "", rates["numpy"]


def dense():
    """Ten classes, 784 features."""
    X, y = dense_data(30_000, 10, 784)
    yield from _dense("dense", X, y, 10, ("", ">= 1", ">= 0.5", ">= 15"))


def digits():
    """Three classes, 64 features, half of them 0."""
    X, y = digits_data(100_000, 3)
    yield from _dense("digits", X, y, 3, ("", "", "", ""))


def _dense(case, X, y, classes, goals):
    rounds, shape, narrow = len(y), (classes, X.shape[1]), X.astype(np.float32)
    steps, scores = np.zeros(classes), np.zeros(classes)

    def aligned(dtype):
        return aligned_zeros(shape, dtype, apart=True)

    contenders = {
        "run": lambda: learner(classes).run(X, y),
        "single": lambda: learner(classes, np.float32).run(narrow, y),
        "bare": lambda: bare_dense(X, y, np.zeros(shape)),
        "passes": lambda: passes_dense(X, y, aligned(np.float64), steps, scores),
        "passes, single": lambda: passes_dense(narrow, y, aligned(np.float32), steps, scores),
        "numpy": lambda: numpy_loop(X[:2000], y[:2000], classes),
    }
    yield from _beside(case, contenders, (X, y, classes), rounds, goals, text=False)


def thin():
    """Twenty classes, 100 000 features, 75 of them in a row."""
    X, y = sparse_data(50_000, 20, 100_000, 75)
    narrow, shape, scores = X.astype(np.float32), (100_000, 20), np.zeros(20)
    dense_rows = X[:20].toarray()
    places = (X.indices, X.indptr)

    def aligned(dtype):
        return aligned_zeros(shape, dtype, apart=False)

    contenders = {
        "run": lambda: learner(20).run(X, y),
        "single": lambda: learner(20, np.float32).run(narrow, y),
        "bare": lambda: bare_sparse(X.data, *places, y, np.zeros(shape)),
        "passes": lambda: passes_sparse(X.data, *places, y, aligned(np.float64), scores),
        "passes, single": lambda: passes_sparse(
            narrow.data, *places, y, aligned(np.float32), scores
        ),
        "numpy": lambda: numpy_loop(dense_rows, y[:20], 20),
    }
    goals = ("", ">= 0.6", ">= 0.5", ">= 8")
    yield from _beside("sparse", contenders, (X, y, 20), 50_000, goals, text=True)


def _beside(case, contenders, stream, rounds, goals, text):
    numpy_apart = {"numpy": contenders.pop("numpy")}  # its threads linger, and slow the next one
    times = best_times(contenders)
    rates = {name: rounds / t for name, t in times.items()}
    rates["numpy"] = (20 if text else 2000) / best_times(numpy_apart)["numpy"]
    run, single = rates["run"], rates["single"]
    on = " on dense rows" if text else ""
    yield case, f"run / NumPy loop{on}", run / rates["numpy"], goals[0], run
    yield case, "run / bare loop", run / rates["bare"], goals[1], run
    yield case, "run / passes alone", run / rates["passes"], goals[2], run
    yield case, "run, float32 / run", single / run, "", single
    yield case, "the same / passes alone, float32", single / rates["passes, single"], "", single
    yield from _wabbit(case, contenders, stream, rounds, goals[3], text)


def _wabbit(case, contenders, stream, rounds, goal, text):
    """Time Vowpal Wabbit beside our own runs."""
    X, y, classes = stream
    count = 10_000 if text else 2000
    how = "from text" if text else "parsed, learning only"
    ours = {name: contenders[name] for name in ("run", "single")}
    theirs = {
        options: learning(X[:count], y[:count], classes, text, options)
        for options in (("", ROOMY) if text else ("",))
    }
    if None in theirs.values():
        yield case, "Vowpal Wabbit is not installed here", float("nan"), goal, None
        return
    times = best_times(ours | theirs)
    run, single = rounds / times["run"], rounds / times["single"]
    for options in theirs:
        rate = count / times[options]
        name = f"Vowpal Wabbit {options}".strip() + f", {how}"
        yield case, f"run / {name}", run / rate, "" if options else goal, run
        yield case, "the same, float32", single / rate, "", single
