"""The section of a report on keys, each of which has a learner of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from driftline.reports.chart import Line, line_chart, number

__all__ = ["KeyRow", "KeyTable", "keys_in_words", "keys_section"]

#: At how many places of their order the losses of keys are drawn.
PLACES = 201


@dataclass(frozen=True)
class KeyRow:
    """One key: its rounds, and the mean losses of its learner, of baselines and others, by name.

    ``alarms`` is how often its losses were seen to rise.
    """

    key: str
    rounds: int
    mean_loss: Mapping[str, float]
    alarms: int = 0

    @property
    def own(self) -> float:
        """The mean loss of its learner, which comes first."""
        return next(iter(self.mean_loss.values()))

    @property
    def beaten_by(self) -> str:
        """Which of the others pays least, and no more than its learner; empty if none does."""
        own, *others = self.mean_loss.items()
        name, least = min(others, key=lambda pair: pair[1])
        return name if least <= own[1] else ""


@dataclass(frozen=True)
class KeyTable:
    """Keys of a run: how many, and those that are told one by one.

    ``least`` is how many rounds a key has at least to be compared with others, ``compared`` how
    many have so many, and ``beaten`` how many of these have a baseline, or another learner, that
    pays as little or less.
    ``risen`` is how many keys had an alarm, and ``alarms`` how many there were in all. ``losses``
    are the mean losses of all compared keys, by name, each from the smallest on.
    ``parts`` are the worst, the typical and the best keys.
    """

    column: str
    count: int
    rounds: tuple[int, int]
    least: int
    compared: int
    beaten: int
    risen: int
    alarms: int
    losses: Mapping[str, np.ndarray]
    parts: Mapping[str, Sequence[KeyRow]]


def keys_in_words(
    table: KeyTable, shown: int = 2, number: Callable[[float], str] = "{:,}".format
) -> list[str]:
    """Return what is told of keys in a few lines."""
    few, many = map(number, table.rounds)
    lines = [f"{number(table.count)} of {table.column!r}, with {few} to {many} rounds"]
    if table.compared:
        where = "all"
        if table.compared < table.count:
            where = f"the {number(table.compared)} with {table.least} rounds or more"
        who = "a baseline" + " or one learner for all" * (len(table.losses) > 3)
        lines.append(f"in {number(table.beaten)} of {where} {who} pays as little or less")
    times = f"{number(table.alarms)} time{'s' * (table.alarms != 1)} in all"
    lines.append(f"losses were seen to rise in {number(table.risen)} of them, {times}")
    names = [_short(row.key) for rows in table.parts.values() for row in rows[:shown]]
    wide = max(map(len, names), default=0)
    for what, rows in table.parts.items():
        for row in rows[:shown]:
            name = _short(row.key)
            said = f"{what:<8} {name:<{wide}}  {row.own:6.1%} of {number(row.rounds)} rounds"
            if row.beaten_by:
                said += f"  ({row.beaten_by} {row.mean_loss[row.beaten_by]:.1%})"
            lines.append(said)
    return lines


def _short(key: str) -> str:
    r"""Return the beginning of a key, in one line.

    >>> _short("a\nb"), _short("x" * 99) == "x" * 30
    ('a?b', True)
    """
    return "".join(c if c.isprintable() else "?" for c in key[:30])


def keys_section(table: KeyTable | None, of: str = "") -> str:
    """Return the section on keys; nothing without keys."""
    if table is None:
        return ""
    told = ". ".join(line[0].upper() + line[1:] for line in keys_in_words(table, 0, number))
    chart = ""
    if table.compared > 1:
        places = np.linspace(0.0, 1.0, min(PLACES, table.compared))
        lines = [
            Line(name, 100.0 * places, np.quantile(losses, places), k + (k > 0), k > 0)
            for k, (name, losses) in enumerate(table.losses.items())
        ]
        chart = line_chart(
            "Mean loss of keys, from the best to the worst",
            lines,
            y_name="mean loss",
            shares=True,
            x_name="per cent of keys",
        )
    names = list(table.losses)
    head = "".join(f"<th>{_unbroken(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><td class=text>{what}</td><th scope=row>{escape(row.key)}</th>"
        + f"<td>{number(row.rounds)}</td>"
        + "".join(f"<td>{row.mean_loss[name]:.1%}</td>" for name in names)
        + f"<td>{row.alarms}</td>"
        + f"<td class=text>{_unbroken(row.beaten_by)}</td></tr>"
        for what, part in table.parts.items()
        for row in part
    )
    columns = f"<th></th><th>{escape(table.column)}</th><th>rounds</th>{head}<th>alarms</th>"
    columns += "<th class=text>beaten by</th>"
    body = f"<table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>"
    note = "Baselines are those of each key: its last label again, its most frequent one so far."
    if len(names) > 3:
        note += f" {names[3].capitalize()}: one learner that plays the rows of all keys."
    return (
        f"<h2>Keys{escape(of)}</h2><p>{escape(told)}.</p>{chart}<div class=wide>{body}</div>"
        f"<p class=soft>{note} All keys are in keys.csv.</p>"
    )


def _unbroken(text: str) -> str:
    """Return a text for a narrow cell, which is to have one line."""
    return escape(text).replace(" ", "\u00a0")
