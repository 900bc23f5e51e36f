"""Driftline in the race: committees, linear members alone, and SGD at constant steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import driftline as dl
from benchmarks.race.contest import Contestant, Play, Played, by_chances, one_by_one
from benchmarks.race.streams import Rows

#: The committee as it comes, and with more or less effort, by name.
EFFORTS = {"auto": "balanced", "auto best": "best", "auto fast": "fast"}

#: The committee through scikit-learn's interface, which has its probabilities.
ROW_BY_ROW = "auto, row by row"

STEPS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


def _run(make: Callable[[dl.tasks.Multiclass], Any], inputs: Callable[[Rows], Any]) -> Play:
    """Return a play of a whole run, kernels compiled before the clock starts."""

    def play(rows: Rows, seed: int) -> Played:
        task, x = dl.tasks.Multiclass(rows.classes), inputs(rows)
        make(task).run(x[:20], rows.labels[:20])
        one = make(task)
        start = time.perf_counter()
        trace = one.run(x, rows.labels)
        return Played(trace.prediction, time.perf_counter() - start)

    return play


def _row_by_row(rows: Rows, seed: int) -> Played:
    """Ask the committee for probabilities before every row, by scikit-learn's interface."""
    from driftline.estimators import DriftClassifier

    model, classes = DriftClassifier(), np.arange(rows.classes)
    unknown = np.full((1, rows.classes), 1.0 / rows.classes)

    def predict(x: np.ndarray) -> np.ndarray:
        return model.predict_proba(x) if hasattr(model, "classes_") else unknown

    def learn(x: np.ndarray, label: int) -> None:
        model.partial_fit(x, [label], classes=classes)

    singles = list(rows.raw[:, np.newaxis])
    warm = DriftClassifier().partial_fit(singles[0], rows.labels[:1], classes=classes)
    warm.predict_proba(singles[0])
    made, seconds = one_by_one(predict, learn, singles, rows.labels)
    return by_chances(np.concatenate(made), seconds)


def _raw(rows: Rows) -> Any:
    return rows.raw


def _scaled(rows: Rows) -> Any:
    return rows.inputs


def committee(effort: str) -> Callable[[dl.tasks.Multiclass], Any]:
    """Return what makes a committee, which standardises the raw rows as they were for others."""
    return lambda task: dl.auto(task, effort=effort)


def member(index: int) -> Callable[[dl.tasks.Multiclass], Any]:
    """Return what makes a linear member of the committee, to play alone."""
    return lambda task: committee("fast")(task).members[index]


def sgd(step: float, intercept: bool) -> Callable[[dl.tasks.Multiclass], dl.OGD]:
    """Return what makes logistic SGD at a constant step, with argmax and no domain."""

    def make(task: dl.tasks.Multiclass) -> dl.OGD:
        loss = dl.losses.Logistic(task, base=math.e)
        rate, domain = dl.rates.Constant(step), dl.domains.Unbounded()
        return dl.OGD(loss, dl.decoders.Argmax(loss), rate, domain, intercept=intercept)

    return make


def short_name(one: Any) -> str:
    """Return loss, rate and diameter of a learner in few words."""
    loss, rate, domain = one.parts.loss, one.parts.rate, one.parts.domain
    kind = type(getattr(loss, "loss", loss)).__name__
    factor = getattr(loss, "factor", 1.0)
    free = " free" if getattr(rate, "monotone", True) is False else ""
    first = getattr(rate, "first_eta", None) or getattr(rate, "eta", None)
    start = "" if first is None else f" {first:g}"
    again = "" if one.parts.restart is None else " restarts"
    return f"{factor:g} {kind} {type(rate).__name__}{start}{free} {domain.diameter:g}{again}"


def contestants() -> list[Contestant]:
    """Return all of ours."""
    made = []
    for name, effort in EFFORTS.items():
        play, setting = _run(committee(effort), _raw), name.removeprefix("auto").strip()
        made.append(Contestant("ours", "auto", setting, play, default=not setting, raw=True))
    by_rows = Contestant("ours", ROW_BY_ROW, "", _row_by_row, cost="slowest", raw=True)
    made.append(by_rows)
    for index, one in enumerate(committee("fast")(dl.tasks.Multiclass(3)).members):
        setting = f"{index} {short_name(one)}"
        made.append(Contestant("members", "member", setting, _run(member(index), _scaled)))
    for step in STEPS:
        plays = {
            "OGD constant": _run(sgd(step, intercept=False), _scaled),
            "OGD constant, intercept 1": _run(sgd(step, intercept=True), _scaled),
        }
        for family, play in plays.items():
            made.append(Contestant("sgd", family, f"{step:g}", play))
    return made
