"""What a report says of its runs before it shows them."""

from __future__ import annotations

from html import escape

from driftline.reports.chart import number
from driftline.reports.report_data import ReportData

__all__ = ["said", "verdict"]

#: So many runs of a section are put in words; more are a table.
MOST_SAID = 4


def verdict(story: ReportData) -> str:
    """Return one sentence on a run: what it paid, beside others, and what was promised."""
    paid = f"{number(story.total)} {story.unit} in {number(story.rounds)} rounds"
    text = f"{story.name}: {paid} ({100 * story.total / story.rounds:.3g}%)"
    text += ", drawn at random" if story.random else ""
    if story.expected is not None:
        text += f", {number(float(story.expected.sum()))} expected"
    others = {k: float(v.sum()) for k, v in story.columns.items() if k != "loss"}
    if others:
        beside = ", ".join(f"{name} {number(total)}" for name, total in others.items())
        text += f"; beside it: {beside}"
    held = {k: v for k, v in story.bounds.items() if isinstance(v, float)}
    if held and story.trivial is not None:
        form, least = min(held.items(), key=lambda item: item[1])
        kind = "vacuous: guessing pays" if least >= story.trivial else "guessing would pay"
        what = "The smallest bound of what is expected" if story.random else "Its smallest bound"
        text += f". {what} is {number(least)} ({form.replace('_', ' ')}; {kind} "
        text += f"{number(story.trivial)})"
    if story.findings:
        text += f". The audit found: {story.findings[0]}"
    return text + "."


def said(told: list[ReportData]) -> str:
    """Return a sentence for each of few runs, or a table of many."""
    if len(told) <= MOST_SAID:
        return "".join(f"<p class=verdict>{escape(verdict(story))}</p>" for story in told)
    rows = "".join(
        f"<tr><td>{escape(story.name)}</td><td>{number(story.total)}</td>"
        f"<td>{100 * story.total / story.rounds:.3g}%</td></tr>"
        for story in told
    )
    head = f"<tr><th>run</th><th>{escape(told[0].unit)}</th><th>share</th></tr>"
    return f"<div class=wide><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
