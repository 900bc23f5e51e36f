"""The summary of runs at the top of a report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from driftline.reports.chart import number
from driftline.reports.report_data import ReportData
from driftline.typing import Json

__all__ = ["alarms_in_words", "champion_in_words", "delay_in_words", "said", "verdict"]

#: Up to this many runs of a section are put in words; more are a table.
MOST_SAID = 4


def verdict(data: ReportData) -> str:
    """Return one sentence on a run: its loss, those of the baselines, and its bound."""
    others = {k: float(v.sum()) for k, v in data.columns.items() if k != "loss"}
    better = [name for name, total in others.items() if total <= data.total]
    better = better if data.account is None else []  # a champion is followed, and not to be beaten
    paid = f"{number(data.total)} {data.unit} in {number(data.rounds)} rounds"
    text = f"The baseline {better[0]!r} was not beaten. " if better and data.baselines else ""
    text += f"{data.name}: {paid} ({100 * data.share:.3g}%)"
    text += ", drawn at random" if data.random else ""
    if data.unanswered is not None:
        text += f", no answer in {100 * data.unanswered:.3g}% of them"
    if data.expected is not None:
        text += f", {number(float(data.expected.sum()))} expected"
    if others:
        beside = ", ".join(f"{name} {number(total)}" for name, total in others.items())
        text += f"; beside it: {beside}"
    held = {k: v for k, v in data.bounds.items() if isinstance(v, float)}
    if held and data.trivial is not None:
        form, least = min(held.items(), key=lambda item: item[1])
        vacuous, guess = least >= data.trivial, data.guess
        kind = f"vacuous: {guess} pays" if vacuous else f"{guess} would pay"
        what = "The smallest bound of what is expected" if data.random else "Its smallest bound"
        text += f". {what} is {number(least)} ({form.replace('_', ' ')}; {kind} "
        text += f"{number(data.trivial)})"
    if late := delay_in_words(data):
        text += f". {late}"
    if data.findings:
        text += f". The audit found: {data.findings[0]}"
    return text + "."


def delay_in_words(data: ReportData) -> str:
    """Say what late labels have added to the bound; "" if that is nothing, or there is no bound."""
    cost = data.delay_cost
    if not round(cost, 1) or not any(isinstance(bound, float) for bound in data.bounds.values()):
        return ""
    if cost < 0.0:
        return f"Late labels have taken {number(-cost)} from every bound: older weights were better"
    return f"Late labels have added {number(cost)} to every bound"


def said(told: list[ReportData]) -> str:
    """Return a sentence for each of few runs, or a table of many."""
    if len(told) <= MOST_SAID:
        return "".join(f"<p class=verdict>{escape(verdict(data))}</p>" for data in told)
    rows = "".join(
        f"<tr><td>{escape(data.name)}</td><td>{number(data.total)}</td>"
        f"<td>{100 * data.share:.3g}%</td></tr>"
        for data in told
    )
    head = f"<tr><th>run</th><th>{escape(told[0].unit)}</th><th>share</th></tr>"
    return f"<div class=wide><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"


def champion_in_words(told: Json, unit: str) -> str:
    r"""Say what a champion, its guard and averaged probabilities have paid.

    >>> acted = {"rows": 80, "stretches": 3, "first": 4980, "last": 9000}
    >>> loss = {"champion": 1204.0, "guarded": 611.0, "averaged": 598.0}
    >>> told = champion_in_words({"loss": loss, "silent": 0, "acted": acted}, "mistakes")
    >>> print(told.replace("; ", "\n"))
    your model 1,204 mistakes, guarded 611, averaged with Driftline 598
    the guard acted in 3 stretches, first at row 4,980
    """
    loss, acted = told["loss"], told["acted"]
    paid = {name: f"{own:,.0f}" if own == int(own) else f"{own:,.1f}" for name, own in loss.items()}
    made = f"your model {paid['champion']} {unit}, guarded {paid['guarded']}"
    made += f", averaged with Driftline {paid['averaged']}"
    made += f" ({told['silent']:,} rows without its prediction)" if told["silent"] else ""
    if acted is None:
        return f"{made}; the guard never acted"
    count = acted["stretches"]
    stretches = "1 stretch" if count == 1 else f"{count:,} stretches"
    return f"{made}; the guard acted in {stretches}, first at row {acted['first']:,}"


def alarms_in_words(alarms: Sequence[int], times: Sequence[str] = (), most: int = 5) -> str:
    """Say after which rounds losses were seen to have risen: the alarms, which count from 0.

    Where it is known when that was, the times are in brackets.

    >>> alarms_in_words([]), alarms_in_words([1507, 3002])
    ('Losses were never seen to rise', 'Losses were seen to rise after rounds 1,508 and 3,003')
    >>> alarms_in_words(range(100))
    'Losses were seen to rise 100 times, first after round 1 and last after round 100'
    >>> alarms_in_words([1507], ["2024-05-01"])
    'Losses were seen to rise after round 1,508 (2024-05-01)'
    """
    shown = [f"{int(t) + 1:,}" for t in alarms]
    if times:
        pairs = zip(shown, times, strict=True)
        shown = [f"{round} ({time})" if time else round for round, time in pairs]
    if not shown:
        return "Losses were never seen to rise"
    if len(shown) > most:
        ends = f"first after round {shown[0]} and last after round {shown[-1]}"
        return f"Losses were seen to rise {len(shown)} times, {ends}"
    if len(shown) == 1:
        return f"Losses were seen to rise after round {shown[0]}"
    return f"Losses were seen to rise after rounds {', '.join(shown[:-1])} and {shown[-1]}"
