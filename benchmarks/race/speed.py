"""Rounds per second of ours, of River and of Vowpal Wabbit, one after another in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import driftline as dl
from benchmarks.made import dense_data, sparse_data
from benchmarks.race.ours import EFFORTS, member
from benchmarks.race.sheet import Sheet
from benchmarks.race.streams import Rows
from benchmarks.timing import best_times
from benchmarks.wabbit import learning

Timed = dict[str, tuple[int, Callable[[], object]]]

#: Rounds, classes and features as in ``make bench``; of sparse rows also entries.
DENSE, SPARSE = (20_000, 10, 784), (20_000, 20, 100_000, 75)


def _whole(classes: int, raw: Any, scaled: Any, labels: np.ndarray) -> Timed:
    """Return whole runs of the committee and of one of its members, in both precisions."""
    task, count = dl.tasks.Multiclass(classes), len(labels)
    single = scaled.astype(np.float32)

    def alone(dtype: Any, inputs: Any) -> None:
        parts = member(3)(task).parts
        dl.OGD(parts.loss, parts.decoder, parts.rate, parts.domain, dtype=dtype).run(inputs, labels)

    def committee(effort: str, dtype: Any = np.float64) -> tuple[int, Callable[[], object]]:
        return count, lambda: dl.auto(task, effort=effort, dtype=dtype).run(raw, labels)

    return {
        **{name: committee(effort) for name, effort in EFFORTS.items()},
        "auto fast, float32": committee("fast", np.float32),
        "one OGD": (count, lambda: alone(np.float64, scaled)),
        "one OGD, float32": (count, lambda: alone(np.float32, single)),
    }


def _single(rows: Rows) -> Timed:
    """Return rounds one by one from Python."""
    task, labels = dl.tasks.Multiclass(rows.classes), rows.labels.tolist()

    def steps(one: Any, inputs: Any, count: int) -> None:
        for x, label in zip(inputs[:count], labels[:count], strict=True):
            one.step(x, label)

    return {
        "auto, step by step": (500, lambda: steps(dl.auto(task), rows.raw, 500)),
        "auto fast, step by step": (
            500,
            lambda: steps(dl.auto(task, effort="fast"), rows.raw, 500),
        ),
        "one OGD, step by step": (2000, lambda: steps(member(3)(task), rows.inputs, 2000)),
    }


def _river(rows: Rows) -> Timed:
    from river.linear_model import SoftmaxRegression

    part = rows.first(500)
    dicts = [dict(enumerate(row)) for row in part.inputs.tolist()]
    labels = part.labels.tolist()

    def play(predict: bool) -> None:
        model = SoftmaxRegression()
        for x, label in zip(dicts, labels, strict=True):
            if predict:
                model.predict_one(x)
            model.learn_one(x, label)

    return {
        "river SoftmaxRegression": (500, lambda: play(True)),
        "river SoftmaxRegression, learning only": (500, lambda: play(False)),
    }


def _wabbit(X: Any, labels: np.ndarray, classes: int, parsed: bool) -> Timed:
    """Return Vowpal Wabbit as it comes, and with room for all weights where it has too little."""
    X, labels, made = X[:2000], labels[:2000], {}
    for options in ("", "-b 21") if X.shape[1] * classes > 1 << 18 else ("",):
        for text in (False, True) if parsed else (True,):
            play = learning(X, labels, classes, text, options)
            if play is None:
                raise ImportError("vowpalwabbit is not installed: it was left out")
            name = f"VW oaa {options}".strip() + (", from text" if text else ", learning only")
            made[name] = (len(labels), play)
    return made


def _sheet(title: str, makers: list[Callable[[], Timed]], others: tuple[str, ...]) -> Sheet:
    sheet = Sheet(title, ["who", "rounds/s", *(f"/ {other}" for other in others)])
    timed: Timed = {}
    for make in makers:
        try:
            timed |= make()
        except ImportError as error:
            sheet.notes.append(str(error))
    seconds = best_times({name: play for name, (_, play) in timed.items()}, repeats=5)
    rates = {name: timed[name][0] / seconds[name] for name in timed}
    sheet.sections.append([])
    for name, rate in rates.items():
        ratios = [f"{rate / rates[other]:.3g}" if other in rates else "-" for other in others]
        sheet.sections[0].append([name, f"{rate:,.0f}", *ratios])
    return sheet


def speed_of(stream: str, rows: Rows) -> Sheet:
    """Return rates on a dense stream, and ratios to River's and to Vowpal Wabbit's."""
    inputs, labels, classes, raw = rows
    makers: list[Callable[[], Timed]] = [
        lambda: _whole(classes, raw, inputs, labels),
        lambda: _single(rows),
        lambda: _river(rows),
        lambda: _wabbit(inputs, labels, classes, parsed=True),
    ]
    others = ("river SoftmaxRegression", "VW oaa, learning only", "VW oaa, from text")
    title = f"Speed on {stream}: {classes} classes, {raw.shape[1]} features"
    return _sheet(f"{title}, best of interleaved repetitions", makers, others)


def dense_speed() -> Sheet:
    """Return rates on the dense stream of ``make bench``, and ratios to Vowpal Wabbit's."""
    X, labels = dense_data(*DENSE)
    _, classes, features = DENSE
    makers: list[Callable[[], Timed]] = [
        lambda: _whole(classes, X, X, labels),
        lambda: _wabbit(X, labels, classes, parsed=True),
    ]
    title = f"Speed on dense rows: {classes} classes, {features} features"
    return _sheet(title, makers, ("VW oaa, learning only", "VW oaa, from text"))


def sparse_speed() -> Sheet:
    """Return rates on the sparse stream of ``make bench``, and ratios to Vowpal Wabbit's."""
    X, labels = sparse_data(*SPARSE)
    _, classes, features, entries = SPARSE
    makers: list[Callable[[], Timed]] = [
        lambda: _whole(classes, X, X, labels),
        lambda: _wabbit(X, labels, classes, parsed=False),
    ]
    title = f"Speed on sparse rows: {classes} classes, {entries} of {features} features"
    return _sheet(title, makers, ("VW oaa, from text", "VW oaa -b 21, from text"))
