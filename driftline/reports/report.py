"""A report of one run or several: one HTML file."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from driftline import files
from driftline.errors import InputError
from driftline.reports.changed_inputs import inputs_section
from driftline.reports.chart import Line, heat_map, line_chart, number, share_chart
from driftline.reports.key_table import keys_section
from driftline.reports.page import page
from driftline.reports.report_data import ReportData
from driftline.reports.time_axis import TimeAxis
from driftline.reports.verdict import alarms_in_words, delay_in_words, said
from driftline.version import __version__

__all__ = ["write_report"]

#: The most marks of a kind; if there are more, none are drawn.
MOST_MARKS = 60

#: How many features have their curves drawn, the least change of a curve, and the most lines.
MOST_CURVES, LEAST_CURVE, MOST_LINES = 3, 0.02, 8


def write_report(
    runs: ReportData | Sequence[ReportData] | Mapping[str, Sequence[ReportData]],
    path: str | Path,
    title: str = "",
) -> Path:
    """Write a report to one self-contained file, and return its path.

    Several runs share their charts; runs in a dict have a section for each key.

    >>> import tempfile
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=500, flips=2, seed=0)
    >>> trace = dl.auto(stream.task).run(stream)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_report(ReportData.of(trace, stream.labels), f"{folder}/report.html")
    ...     report.read_text().startswith("<!doctype html>")
    True
    """
    if isinstance(runs, ReportData):
        runs = [runs]
    pairs = runs.items() if isinstance(runs, Mapping) else [("", runs)]
    sections = {heading: list(told) for heading, told in pairs}
    if not sections or not all(sections.values()):
        raise InputError("a report needs one run or more")
    every = [data for told in sections.values() for data in told]
    title = title or "Driftline: " + ", ".join(data.name for data in every[:4])
    parts = [f"<h1>{escape(title)}</h1>"]
    for place, (heading, told) in enumerate(sections.items()):
        if heading:
            parts.append(f"<h2>{escape(heading)}</h2>")
        parts.append(said(told))
        if len(told) > 1 and place == 0:
            parts.append(_boxes(told))
        parts += [_losses(told), _rolling(told)]
        parts += [keys_section(data.keys, _of(data, told)) for data in told]
        parts += [_guarded(data, _of(data, told)) for data in told]
        parts += [_sets(data, _of(data, told)) for data in told]
        parts += [inputs_section(data.inputs, _of(data, told)) for data in told]
        parts += [_inside(data, len(told) > 1) for data in told]
        parts += [_matters(data, len(told) > 1) for data in told]
        parts.append(_bounds(told))
    parts.append(_settings(every if len(sections) == 1 else every[:1]))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = page(title, "".join(parts))
    return files.replace(path, whole.encode("utf-8", "replace"))  # halves of characters are "?"


def _of(data: ReportData, told: list[ReportData]) -> str:
    """Name a run, if there are several."""
    return f" of {data.name}" if len(told) > 1 else ""


def _boxes(told: list[ReportData]) -> str:
    made = "".join(
        f'<label><input type=checkbox checked data-run="{i}"> {escape(data.name)}</label>'
        for i, data in enumerate(told)
    )
    return f"<fieldset><legend class=soft>Runs shown</legend>{made}</fieldset>"


def _losses(told: list[ReportData]) -> str:
    lines = []
    for i, data in enumerate(told):
        others = [name for name in data.columns if name != "loss"] if len(told) == 1 else []
        for j, name in enumerate(["loss", *others]):
            label = data.name if name == "loss" else name
            total = np.r_[0.0, np.cumsum(data.columns[name])]
            colour, dashed = (i, i >= 8) if name == "loss" else (1 + j, True)
            lines.append(Line(label, np.r_[0, data.ends], total, colour, dashed, i))
        if len(told) == 1:
            lines += _expected(data) + _bound_lines(data)
    unit = told[0].unit
    title, times = f"All {unit} so far", _times(told)
    chart = line_chart(title, lines, y_name=unit, marks=_marks(told), times=times)
    return f"<h2>What was paid</h2>{chart}"


def _expected(data: ReportData) -> list[Line]:
    """Return the line of the expected loss, where it differs from the actual loss."""
    if data.expected is None:
        return []
    total = np.r_[0.0, np.cumsum(data.expected)]
    return [Line("expected of its random predictions", np.r_[0, data.ends], total, 0, True)]


def _bound_lines(data: ReportData) -> list[Line]:
    """Return the lines of all bounds that are not vacuous."""
    top, ends = np.inf if data.trivial is None else data.trivial, np.array([0.0, data.rounds])
    held = {k: v for k, v in data.bounds.items() if isinstance(v, float) and v < top}
    return [
        Line(f"bound, {form.replace('_', ' ')}", ends, np.full(2, value), 4 + k, True)
        for k, (form, value) in enumerate(held.items())
    ]


def _rolling(told: list[ReportData]) -> str:
    lines = []
    for i, data in enumerate(told):
        sizes = data.sizes
        window = max(1, len(sizes) // 50)
        kernel = np.ones(window)
        for j, (name, sums) in enumerate(data.columns.items()):
            if name != "loss" and len(told) > 1:
                continue
            counted = np.maximum(np.convolve(sizes, kernel)[: len(sizes)], 1e-300)
            mean = np.convolve(sums, kernel)[: len(sums)] / counted
            label = data.name if name == "loss" else name
            colour, dashed = (i, i >= 8) if name == "loss" else (1 + j, True)
            lines.append(Line(label, data.ends, mean, colour, dashed, i))
    title, marks = "Share over the last fiftieth", _marks(told)
    chart = line_chart(title, lines, marks=marks, shares=True, times=_times(told))
    note = "Grey: known changes. " if _marks(told).get("change") else ""
    if len(told) == 1 and told[0].keys is None:
        drawn = " (dotted lines)" if _marks(told).get("alarm") else ""
        note += f"{escape(alarms_in_words(told[0].alarms, told[0].alarm_times))}{drawn}."
    return f"<h2>How it went</h2>{chart}<p class=soft>{note}</p>"


def _sets(data: ReportData, of: str) -> str:
    """Return the coverage of sets of labels over time, and their sizes; nothing without sets."""
    if data.covered is None or data.set_sizes is None:
        return ""
    lengths = np.diff(np.r_[0, data.ends])
    window = max(1, len(lengths) // 50)
    kernel, count = np.ones(window), len(lengths)
    rounds = np.convolve(lengths, kernel)[:count]
    share, size = (
        np.convolve(sums, kernel)[:count] / rounds for sums in (data.covered, data.set_sizes)
    )
    goal = Line("goal", np.array([0.0, data.rounds]), np.full(2, data.goal), 1, True)
    shares = [Line("rows whose label is in the set", data.ends, share, 0), goal]
    sizes = [Line("labels in a set", data.ends, size, 2)]
    title = "Coverage over the last fiftieth"
    charts = line_chart(title, shares, shares=True, times=data.times)
    charts += line_chart("Labels in a set", sizes, y_name="labels", times=data.times)
    mean, every = data.set_sizes.sum() / data.rounds, data.covered.sum() / data.rounds
    said = f"{every:.2%} of all sets have the label, {mean:.2f} labels a set."
    return f"<h2>Sets of labels{escape(of)}</h2>{charts}<p class=soft>{said}</p>"


def _guarded(data: ReportData, of: str) -> str:
    """Return the account of a guard over time; nothing without a champion."""
    if data.account is None:
        return ""
    ends, budget = np.array([0.0, data.rounds]), data.budget
    lines = [
        Line("account and reserves", data.ends, data.account, 0),
        Line("up to which your model predicts", ends, np.full(2, budget), 1, True),
        Line("up to which averaged probabilities do", ends, np.full(2, 2.0 * budget), 2, True),
    ]
    chart = line_chart("The account", lines, y_name="mistakes", times=data.times)
    text = data.guarded[0].upper() + data.guarded[1:]
    return f"<h2>Your model{escape(of)}</h2>{chart}<p class=soft>{escape(text)}.</p>"


def _times(told: list[ReportData]) -> TimeAxis | None:
    """Return when rounds were, if the charts are of one run."""
    return told[0].times if len(told) == 1 else None


def _marks(told: list[ReportData]) -> dict[str, Sequence[float]]:
    marks = {"change": told[0].changes, "alarm": told[0].alarms if len(told) == 1 else []}
    return {kind: places for kind, places in marks.items() if len(places) <= MOST_MARKS}


def _inside(data: ReportData, several: bool) -> str:
    made, of = [], f" of {data.name}" if several else ""
    if data.weights is not None:
        made.append(share_chart(f"Weights{of}", data.ends, data.weights, data.members, data.times))
    if "eta" in data.means:
        lines = [Line("step", data.ends, data.means["eta"], 0)]
        if "eta_high" in data.means:
            top = 4.0 * float(np.nanmax(data.means["eta"]))
            high = np.minimum(np.nan_to_num(data.means["eta_high"], nan=top), top)
            starts = np.arange(0, len(high), max(1, len(high) // 50))
            least = np.minimum.reduceat(high, starts)
            name = "largest admissible step, the least of a fiftieth"
            lines.append(Line(name, data.ends[starts], least, 1, True))
        title = f"The rate within its range{of}"
        made.append(line_chart(title, lines, y_name="step", times=data.times))
    if "gap" in data.means:
        gap = Line("loss minus expected target loss", data.ends, data.means["gap"], 2)
        made.append(line_chart(f"The surrogate gap{of}", [gap], times=data.times))
    if data.counts is not None:
        made.append(_table(data, of))
    return f"<h2>Inside{escape(of)}</h2>{''.join(made)}" if made else ""


def _table(data: ReportData, of: str) -> str:
    counts, names = data.counts, data.names
    assert counts is not None
    if counts.shape[1] == 4 and len(names) != 4 or counts.shape[0] != counts.shape[1]:
        right, missed, wrong = counts[:, 0], counts[:, 1], counts[:, 2]
        rows = "".join(
            f"<tr><th scope=row>{escape(name)}</th><td>{a + b}</td><td>{_share(a, a + c)}</td>"
            f"<td>{_share(a, a + b)}</td></tr>"
            for name, a, b, c in zip(names, right, missed, wrong, strict=True)
        )
        head = "<tr><th>tag</th><th>rounds</th><th>precision</th><th>recall</th></tr>"
        return f"<div class=wide><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    rows = "".join(
        f"<tr><th scope=row>{escape(name)}</th><td>{counts[i].sum()}</td>"
        f"<td>{_share(counts[i, i], counts[:, i].sum())}</td>"
        f"<td>{_share(counts[i, i], counts[i].sum())}</td></tr>"
        for i, name in enumerate(names)
    )
    head = "<tr><th>class</th><th>rounds</th><th>precision</th><th>recall</th></tr>"
    table = f"<div class=wide><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    return table + heat_map(f"Rows are true, columns predicted{of}", names, counts)


def _matters(data: ReportData, several: bool) -> str:
    """Return the section on features: their importance, and the curves of the first."""
    told = data.explanation
    if told is None or not told.importance.any():
        return ""
    of = f" of {data.name}" if several else ""
    known = dict(zip(told.names, told.importance.tolist(), strict=True))
    shown = [name for name in told.order if name in told.curves and known[name] > 0.0]
    rows = "".join(
        f"<tr><th scope=row>{escape(name)}</th><td>{100 * known[name]:.1f}%</td>"
        f"<td class=text>{escape(told.in_words(name))}</td></tr>"
        for name in shown
    )
    head = "<tr><th>feature</th><th>moves</th>"
    head += "<th class=text>chances from its lowest value to its highest</th>"
    note = (
        "<p class=soft>What the learner relies on after the last round: how much of its chances "
        "moves when a feature is exchanged with that of another of the last rows. Features that "
        "tell the same share it.</p>"
    )
    table = f"<div class=wide><table><thead>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    charts = []
    for name in shown[:MOST_CURVES]:
        curve = told.curves[name]
        if len(curve.values) < 2 or curve.texts or known[name] < LEAST_CURVE:
            continue
        pairs = zip(told.labels[:MOST_LINES], curve.chances.T, strict=False)
        lines = [Line(label, curve.values, made, k) for k, (label, made) in enumerate(pairs)]
        title = f"Mean chances by {name}{of}"
        charts.append(line_chart(title, lines, y_name="mean chance", shares=True, x_name=name))
    return f"<h2>What matters{escape(of)}</h2>{note}{table}{''.join(charts)}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.3g}%" if whole else "-"


def _bounds(told: list[ReportData]) -> str:
    rows = []
    for data in told:
        for form, value in data.bounds.items():
            text, vacuous = escape(str(value)), False
            if isinstance(value, float):
                text = number(value)
                vacuous = data.trivial is not None and value >= data.trivial
            rows.append(
                f"<tr><td>{escape(data.name)}</td>"
                f"<td class=text>{escape(form.replace('_', ' '))}</td><td>{text}</td>"
                f"<td>{'vacuous' if vacuous else ''}</td></tr>"
            )
    if not rows:
        return ""
    pairs = [(data.name, words) for data in told if (words := delay_in_words(data))]
    late = [f"{name}: {words}." if len(told) > 1 else f"{words}." for name, words in pairs]
    head = "<tr><th>run</th><th class=text>form</th><th>bound</th><th></th></tr>"
    note = (
        "<p class=soft>A bound of the total expected target loss, against the comparator it was "
        "made for. Vacuous: no better than guessing. Worst case is what a theorem promises "
        "before the first round; the others are accounts of this run.</p>"
    )
    return (
        f"<h2>What was promised</h2>{note}<div class=wide><table><thead>{head}</thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        + "".join(f"<p>{escape(words)}</p>" for words in late)
    )


def _settings(told: list[ReportData]) -> str:
    packages = ("driftline", "numpy", "scipy", "numba")
    found = {name: _version(name) for name in packages} | {"python": platform.python_version()}
    made = [f"<p class=soft>{escape(', '.join(f'{k} {v}' for k, v in found.items()))}</p>"]
    for data in told:
        text = escape(json.dumps(data.settings, indent=1, default=str))
        made.append(f"<details><summary>{escape(data.name)}</summary><pre>{text}</pre></details>")
    return f"<h2>Settings</h2>{''.join(made)}"


def _version(name: str) -> str:
    try:
        return __version__ if name == "driftline" else version(name)
    except PackageNotFoundError:
        return "-"
