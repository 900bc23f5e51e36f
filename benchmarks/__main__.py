"""The table of ``make bench``: ratios to references measured in the same run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc

from rich.console import Console
from rich.table import Table
from scipy import sparse

from benchmarks.certificates import audits, hindsight
from benchmarks.committees import committees
from benchmarks.convolutional import many_classes, rankings
from benchmarks.estimators import estimators
from benchmarks.made import dense_data, learner, sparse_data
from benchmarks.rounds import dense, digits, small, thin
from benchmarks.structured import chains, many_tags, matchings, permutahedron
from benchmarks.structures import beside, documents, slopes, structures, tagging
from benchmarks.tables import own_tables
from benchmarks.timing import best_times


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
        *(small, digits, dense, thin, growth, memory, start),
        *(permutahedron, chains, many_tags, matchings),
        *(structures, slopes, beside, tagging, documents),
        *(rankings, many_classes),
        *(audits, hindsight),
        own_tables,
        *(committees, estimators),
    )
    for part in parts:
        for case, what, ratio, goal, rate in part():
            table.add_row(case, what, f"{ratio:.3g}", goal, "" if rate is None else f"{rate:,.0f}")
        table.add_section()
    console.print(table)
    console.print(f"{time.perf_counter() - began:.0f} seconds in all")


if __name__ == "__main__":
    main()
