"""The table of ``make bench``: ratios to references measured in the same run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

import driftline as dl
from benchmarks.certificates import audits, hindsight
from benchmarks.convolutional import many_classes, rankings
from benchmarks.references import bare_dense, bare_sparse, numpy_loop
from benchmarks.structured import chains, many_tags, matchings, permutahedron
from benchmarks.timing import best_times

GENERATOR = np.random.default_rng(0)


def dense_data(rounds, classes, features):
    X = GENERATOR.standard_normal((rounds, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    W = GENERATOR.standard_normal((classes, features))
    return X, np.argmax(X @ W.T, axis=1)


def sparse_data(rounds, classes, features, entries):
    columns = GENERATOR.integers(0, features, (rounds, entries))
    columns.sort(axis=1)
    values = np.full(rounds * entries, 1.0 / np.sqrt(entries))
    starts = np.arange(0, rounds * entries + 1, entries)
    X = sparse.csr_array((values, columns.ravel(), starts), shape=(rounds, features))
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    W = GENERATOR.standard_normal((features, classes))
    return X, np.argmax(X @ W, axis=1)


def learner(classes):
    """Return the learner of the NumPy loop: the paper's, with the Polyak rate."""
    loss = dl.losses.Logistic(dl.tasks.Multiclass(classes))
    return dl.OGD(loss, dl.decoders.UniformMix(loss), dl.rates.Polyak(), dl.domains.Ball(20.0))


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
    X, y = dense_data(60_000, 10, 784)
    times = best_times(
        {
            "run": lambda: learner(10).run(X, y),
            "bare": lambda: bare_dense(X, y, np.zeros((10, 784))),
            "numpy": lambda: numpy_loop(X[:2000], y[:2000], 10),
        }
    )
    rate = 60_000 / times["run"]
    yield "dense", "run / bare loop", times["bare"] / times["run"], ">= 0.6", rate
    yield "dense", "run / NumPy loop", rate / (2000 / times["numpy"]), "", rate


def thin():
    """Twenty classes, 100 000 features, 75 of them in a row."""
    X, y = sparse_data(50_000, 20, 100_000, 75)
    dense_rows = X[:300].toarray()
    times = best_times(
        {
            "run": lambda: learner(20).run(X, y),
            "bare": lambda: bare_sparse(X.data, X.indices, X.indptr, y, np.zeros((100_000, 20))),
            "numpy": lambda: numpy_loop(dense_rows[:20], y[:20], 20),
        },
        repeats=4,
    )
    rate = 50_000 / times["run"]
    yield "sparse", "run / bare loop", times["bare"] / times["run"], ">= 0.6", rate
    yield "sparse", "run / NumPy loop on dense rows", rate / (20 / times["numpy"]), "", rate


def growth():
    """Cost of a sparse round as features, entries and classes grow, all drawn from 10 000."""
    base = None
    for features, entries, classes in (
        (10_000, 75, 20),
        (100_000, 75, 20),
        (1_000_000, 75, 20),
        (10_000, 150, 20),
        (10_000, 75, 40),
    ):
        X, y = sparse_data(20_000, classes, 10_000, entries)
        X = sparse.csr_array((X.data, X.indices, X.indptr), shape=(20_000, features))
        one = learner(classes)
        one.run(X[:1], y[:1])  # the weights are made here, once
        cost = best_times({"": lambda o=one, X=X, y=y: o.run(X, y)}, repeats=3)[""]
        base = base or cost
        name = f"m = {features}, {entries} entries, K = {classes}"
        yield "growth", f"time at {name}", cost / base, "", 20_000 / cost


def memory():
    """Measure what a run allocates beyond inputs and trace, as a share of the inputs."""
    X, y = dense_data(60_000, 10, 784)
    one = learner(10)
    one.run(X[:10], y[:10])
    tracemalloc.start()
    trace = one.run(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    kept = sum(column.nbytes for column in trace.to_dict().values())
    yield "memory", "peak beyond the trace / size of X", (peak - kept) / X.nbytes, "<< 1", None


COLD = """
import time, json, numpy as np, driftline as dl
loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
learner = dl.OGD(loss, dl.decoders.GapOptimal(loss))
X, y = np.eye(3), np.arange(3)
start = time.perf_counter()
learner.run(X, y)
print(json.dumps(time.perf_counter() - start))
"""
IMPORT = """
import time, json
start = time.perf_counter(); import numpy, numba; middle = time.perf_counter()
import driftline
import driftline.learner
print(json.dumps((time.perf_counter() - start) / (middle - start)))
"""
IMPORT_ALONE = """
import time, json
start = time.perf_counter(); import numpy, numba; middle = time.perf_counter()
import driftline
print(json.dumps((time.perf_counter() - start) / (middle - start)))
"""


def start():
    """Seconds to the first result from a cold and a warm cache, and the cost of importing."""

    def ask(code, **env):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | env
        )
        return json.loads(done.stdout)

    with tempfile.TemporaryDirectory() as folder:
        cold = ask(COLD, DRIFTLINE_CACHE=folder)
        warm = min(ask(COLD, DRIFTLINE_CACHE=folder) for _ in range(3))
    yield "start", "first run, cold cache, seconds", cold, "< 8", None
    yield "start", "first run, warm cache, seconds", warm, "< 1", None
    alone = min(ask(IMPORT_ALONE) for _ in range(5))
    yield "start", "import driftline / import numpy, numba", alone, "<= 1.2", None
    opened = min(ask(IMPORT) for _ in range(5))
    yield "start", "the same with all rooms opened", opened, "", None


def main() -> None:
    console = Console(width=110)
    table = Table(title="Speed beside its references, best of interleaved repetitions")
    table.add_column("case")
    table.add_column("what")
    for name in ("ratio", "goal", "rounds a second"):
        table.add_column(name, justify="right")
    began = time.perf_counter()
    parts = (
        *(small, dense, thin, growth, memory, start),
        *(permutahedron, chains, many_tags, matchings),
        *(rankings, many_classes),
        *(audits, hindsight),
    )
    for part in parts:
        for case, what, ratio, goal, rate in part():
            table.add_row(case, what, f"{ratio:.3g}", goal, "" if rate is None else f"{rate:,.0f}")
        table.add_section()
    console.print(table)
    console.print(f"{time.perf_counter() - began:.0f} seconds in all")


if __name__ == "__main__":
    main()
