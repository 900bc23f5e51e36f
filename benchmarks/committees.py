"""What a committee costs as features and members become more."""

from __future__ import annotations

from functools import partial

import driftline as dl
from benchmarks.made import dense_data
from benchmarks.timing import best_times

EFFORTS = ("fast", "balanced", "best")
ROUNDS = {"fast": 20_000, "balanced": 5_000, "best": 5_000}


def committees():
    """Measure ``auto`` at each effort beside ``fast``, after rounds that fill all windows."""
    task = dl.tasks.Multiclass(2)
    for features in (2, 8, 32, 128, 512):
        X, y = dense_data(max(ROUNDS.values()), 2, features)
        begun = {effort: dl.auto(task, effort=effort) for effort in EFFORTS}
        for one in begun.values():
            one.run(X[:5000], y[:5000])
        times = best_times(
            {
                effort: partial(one.run, X[: ROUNDS[effort]], y[: ROUNDS[effort]])
                for effort, one in begun.items()
            },
            repeats=3,
        )
        base = ROUNDS["fast"] / times["fast"]
        for effort, seconds in times.items():
            rate, members = ROUNDS[effort] / seconds, len(begun[effort].members)
            what = f"{effort}, {members} members, {features} features / fast"
            yield "auto", what, rate / base, "", rate
