"""Rounds per second on digits, one after another in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import driftline as dl
from benchmarks.race.other_peers import as_text
from benchmarks.race.ours import committee, member
from benchmarks.race.sheet import Sheet
from benchmarks.race.streams import Rows
from benchmarks.timing import best_times

Timed = dict[str, tuple[int, Callable[[], object]]]


def _ours(rows: Rows) -> Timed:
    task, labels = dl.tasks.Multiclass(rows.classes), rows.labels
    raw, scaled = rows.raw, rows.inputs

    def steps(one: Any, inputs: Any, count: int) -> None:
        for x, label in zip(inputs[:count], labels[:count].tolist(), strict=True):
            one.step(x, label)

    return {
        "auto, run": (len(labels), lambda: committee(task).run(raw, labels)),
        "auto, step by step": (500, lambda: steps(committee(task), raw, 500)),
        "member 0, run": (len(labels), lambda: member(0)(task).run(scaled, labels)),
        "member 0, step by step": (2000, lambda: steps(member(0)(task), scaled, 2000)),
    }


def _river(rows: Rows) -> Timed:
    from river.linear_model import SoftmaxRegression

    part = rows.first(1000)
    dicts = [dict(enumerate(row)) for row in part.inputs.tolist()]
    labels = part.labels.tolist()

    def play(predict: bool) -> None:
        model = SoftmaxRegression()
        for x, label in zip(dicts, labels, strict=True):
            if predict:
                model.predict_one(x)
            model.learn_one(x, label)

    return {
        "river SoftmaxRegression": (1000, lambda: play(True)),
        "river SoftmaxRegression, learning only": (1000, lambda: play(False)),
    }


def _wabbit(rows: Rows) -> Timed:
    from vowpalwabbit import PredictionType, Workspace

    workspace = Workspace(f"--oaa {rows.classes} --quiet")
    lines = as_text(rows)
    examples = [workspace.example(line) for line in lines]

    def learn() -> None:
        for example in examples:
            workspace.learn(example)

    def predict() -> None:
        for example in examples:
            workspace.learn(example)
            example.get_prediction(PredictionType.MULTICLASS)

    def text() -> None:
        for line in lines:
            workspace.learn(line)

    count = len(lines)
    return {
        "VW oaa, parsed, learning only": (count, learn),
        "VW oaa, parsed": (count, predict),
        "VW oaa, from text": (count, text),
    }


def speeds(rows: Rows) -> Sheet:
    """Return rates and the ratios of ours to River's and to Vowpal Wabbit's."""
    sheet = Sheet("Speed on digits, best of interleaved repetitions", ["who", "rounds/s"])
    timed: Timed = {}
    for make in (_ours, _river, _wabbit):
        try:
            timed |= make(rows)
        except ImportError as error:
            sheet.notes.append(str(error))
    seconds = best_times({name: play for name, (_, play) in timed.items()}, repeats=5)
    rates = {name: timed[name][0] / seconds[name] for name in timed}
    sheet.sections.append([[name, f"{rate:,.0f}"] for name, rate in rates.items()])
    for other in ("river SoftmaxRegression", "VW oaa, parsed, learning only"):
        for name in list(_ours(rows)) if other in rates else ():
            sheet.notes.append(f"{name} / {other}: {rates[name] / rates[other]:.3g}")
    return sheet
