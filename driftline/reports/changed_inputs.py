"""The section of a report on inputs that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from driftline.reports.chart import sparkline
from driftline.typing import Json

__all__ = ["ChangedInput", "InputChange", "inputs_in_words", "inputs_section"]

#: The most inputs of a report, and of those the most changes that are told one by one.
MOST_INPUTS, MOST_CHANGES = 8, 3


@dataclass(frozen=True)
class InputChange:
    """A change of an input: from about which round on, when that was, and what is different."""

    round: int
    time: str
    words: str

    @property
    def where(self) -> str:
        """The round, and the time if it is known."""
        return f"round {self.round:,}" + (f" ({self.time})" if self.time else "")


@dataclass(frozen=True)
class ChangedInput:
    """An input that changed: by how much, in words, and drawn over the run.

    ``moved`` is the largest distance between the distributions of two parts of the run, from 0 to
    1. ``whole`` says what all parts lie between. ``middle`` is what is drawn, named by ``drawn``,
    with a band from ``low`` to ``high`` if these are known; ``marks`` are the changes, from 0 to 1.
    """

    name: str
    moved: float
    changes: Sequence[InputChange]
    whole: str
    drawn: str
    middle: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    marks: Sequence[float]

    @property
    def in_words(self) -> list[str]:
        """What changed: every change, or of many the first, the last and the range."""
        first, last, count = self.changes[0], self.changes[-1], len(self.changes)
        if count <= MOST_CHANGES:
            return [f"from about {c.where} on, {c.words}" for c in self.changes]
        return [f"{count} changes between about {first.where} and {last.where}", self.whole]

    def to_dict(self) -> Json:
        """Return what changed as plain data."""
        changes = [
            {"round": c.round, "time": c.time or None, "what": c.words} for c in self.changes
        ]
        return {"column": self.name, "moved": round(self.moved, 4), "changes": changes}


def inputs_in_words(inputs: Sequence[ChangedInput], most: int = 3) -> list[str]:
    """Return lines for the inputs that moved most, and how many others there are."""
    if not inputs:
        return ["none was seen to change"]
    lines = []
    for one in inputs[:most]:
        first, *others = one.in_words
        lines += [f"{one.name}: {first}", *(f"  {other}" for other in others)]
    more = len(inputs) - most
    return [*lines, f"and {more} more, see the report"] if more > 0 else lines


def inputs_section(inputs: Sequence[ChangedInput] | None, of: str = "") -> str:
    """Return the section; nothing if inputs were not searched."""
    if inputs is None:
        return ""
    head = f"<h2>Inputs that changed{escape(of)}</h2>"
    if not inputs:
        return f"{head}<p class=soft>None was seen to change.</p>"
    rows = []
    for one in inputs[:MOST_INPUTS]:
        said = "; ".join(one.in_words)
        said = escape(said[0].upper() + said[1:])
        chart = sparkline(f"{one.name}: {one.drawn}", one.middle, one.low, one.high, one.marks)
        rows.append(
            f"<tr><th scope=row>{escape(one.name)}</th><td>{chart}</td>"
            f"<td>{100 * one.moved:.0f}%</td><td class=text>{said}</td></tr>"
        )
    names = "<tr><th>input</th><th class=text>over the run</th><th>moved</th>"
    names += "<th class=text>what changed</th></tr>"
    more = len(inputs) - MOST_INPUTS
    note = (
        "What changed for at least a sixteenth of the run, by more than chance would in one of a "
        "hundred runs. Drawn are the median and the middle half of numbers, or the share of a "
        "text. Moved is how far the two most different parts of the run are apart: 0% if they are "
        "alike, 100% if they have nothing in common. Whether it matters is told by alarms."
    )
    note += f" {more} more inputs changed, see summary.json." if more > 0 else ""
    return (
        f"{head}<div class=wide><table class=changes><thead>{names}</thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div><p class=soft>{note}</p>"
    )
