"""A model that was fitted once: alone, guarded, as a member of ``auto``, and ``auto`` alone.

``python -m benchmarks.guarding`` prints mistakes on the rows after the first fifth, on which
gradient-boosted trees are fitted. Real data need ``DRIFTLINE_DATA``.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import driftline as dl
from benchmarks.race import streams

#: Streams of the race, and seeds on which nothing was chosen; ``adult`` is a file of real data.
SEEDS = range(500, 503)
NAMES = ("electricity", "covertype", "adult", "sea abrupt", "synthetic 1")


def rows_of(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and labels of a stream."""
    if name != "adult":
        made = streams.rows_of(name, seed)
        return made.raw, made.labels
    with np.load(Path(os.environ["DRIFTLINE_DATA"]) / "streams" / "adult.npz") as arrays:
        return arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)


def played(X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the mistakes of all four, and the bound of the guarded one."""
    first = len(y) // 5
    model = HistGradientBoostingClassifier(random_state=0).fit(X[:first], y[:first])
    X, y, task = X[first:], y[first:], dl.tasks.Multiclass(int(y.max()) + 1)
    made = model.predict(X)
    known = {row.tobytes(): int(label) for row, label in zip(X, made, strict=True)}  # for speed

    def ask(row: np.ndarray) -> int:
        return known[row.tobytes()]

    guarded = dl.Guarded(ask, task)
    learners = (guarded, dl.auto(task, members=[ask]), dl.auto(task))
    totals = [float(learner.run(X, y).target_loss.sum()) for learner in learners]
    return [float((made != y).sum()), *totals, guarded.guard.bound]


def main() -> None:
    """Print the table."""
    print("| stream | rows | the model | guarded | a member | `auto` alone | bound |")
    there = [name for name in NAMES if name == "adult" or name in streams.available()]
    for name in there if "DRIFTLINE_DATA" in os.environ else ("sea abrupt", "synthetic 1"):
        seeds = [0] if name in (*streams.FIXED, "adult") else SEEDS
        pairs = [rows_of(name, seed) for seed in seeds]
        totals = np.array([played(*pair) for pair in pairs])
        cells = [f"{mean:,.0f}" for mean in totals.mean(axis=0)]
        if len(totals) > 1:
            spread = totals.std(axis=0, ddof=1)
            cells = [f"{a} ± {b:,.0f}" for a, b in zip(cells, spread, strict=True)]
        rows = len(pairs[0][1])
        print(f"| {name} | {rows - rows // 5:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
