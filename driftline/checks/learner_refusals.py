"""Laws of learners: what is refused changes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from driftline.checks.base import law
from driftline.checks.learner_stream import Refused, check_refused, row, saved, spoiled
from driftline.learner import Learner, Ticket
from driftline.typing import Inputs, Labels

__all__ = ["check_refusals", "check_tickets"]


def check_refusals(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that bad rows, streams and states change nothing, before and after learning."""
    played = learner.copy()
    played.run(inputs, labels)
    for one in (played, learner.copy()):
        rows, streams = _rows(one, inputs, labels), _streams(one, inputs, labels)
        check_refused(one, itertools.chain(rows, streams, _states(one)))


def _states(one: Learner) -> Iterator[Refused]:
    what, unchanged = "restore refuses what is no state", "what restore refuses changes nothing"
    yield what, unchanged, lambda: one.restore("no state")


def _rows(one: Learner, inputs: Inputs, labels: Labels) -> Iterator[Refused]:
    bad = row(inputs, 0) * np.nan if hasattr(inputs, "indptr") else np.asarray(inputs[0]) * np.nan
    calls = {
        "step": lambda: one.step(bad, labels[0]),
        "learn_row": lambda: one.learn_row(bad, labels[0]),
        "ask": lambda: one.ask(bad),
        "predict": lambda: one.predict(bad),
    }
    for name, call in calls.items():
        what = f"{name} refuses an input that is not finite"
        yield what, f"what {name} refuses changes nothing", call


def _streams(one: Learner, inputs: Inputs, labels: Labels) -> Iterator[Refused]:
    """Yield streams with a bad row, whose earlier rounds and seed must be rolled back."""
    bad = spoiled(inputs, len(labels) // 2)
    calls = {
        "run": lambda: one.run(bad, labels, seed=1),
        "learn_rows": lambda: one.learn_rows(bad, labels),
    }
    for name, call in calls.items():
        what = f"{name} refuses a stream with a row that is not finite"
        unchanged = f"a stream that is refused leaves the learner as it was, by {name}"
        yield what, unchanged, call


def check_tickets(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that a ticket is told once, to its own learner, in any order."""
    one, other, label = learner.copy(), learner.copy(), labels[0]
    for each in (one, other):
        each.run(inputs, labels)
    ticket, theirs = one.ask(row(inputs, 0)), other.ask(row(inputs, 0))
    law(ticket.learner != theirs.learner, "learners have ids of their own", learner=learner)
    one.copy().tell(ticket, label)  # a copy takes the tickets of its original

    def check(tickets: dict[str, Any]) -> None:
        unchanged = "what tell refuses changes nothing"
        check_refused(
            one,
            (
                (f"tell refuses {seen}", f"{unchanged}: {seen}", partial(one.tell, given, label))
                for seen, given in tickets.items()
            ),
        )

    another = replace(ticket, learner="another")
    unasked = replace(ticket, number=ticket.number + 1000)
    check({"a ticket of another learner": another, "a ticket that nobody asked for": unasked})
    check({"a ticket of an equal learner": theirs})
    one.tell(ticket, label)
    check({"a ticket that was told already": ticket, "what is no ticket": "a ticket"})
    ticket = one.ask(row(inputs, 0))
    one.step(row(inputs, 1), labels[1])
    one.forget(ticket)
    check({"a ticket that was forgotten": ticket})
    _check_late(one, inputs, labels)


def _check_late(one: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that labels may come late and in any order, and that the history decides all bits."""
    other, rounds = one.copy(), one.rounds
    tickets = [one.ask(row(inputs, t)) for t in range(4)]
    again = [other.ask(row(inputs, t)) for t in range(4)]
    counted = "outstanding counts tickets that were asked for and not told"
    law(one.outstanding == 4, counted, asked=4, outstanding=one.outstanding)
    for t in (2, 0):
        one.tell(tickets[t], labels[t])
        other.tell(Ticket.from_bytes(again[t].to_bytes()), labels[t])
        other = other.copy()
    law(one.outstanding == 2, counted, left=2, outstanding=one.outstanding)
    words = "labels that come late are learned from in any order"
    law(one.rounds == rounds + 2, words, rounds=one.rounds - rounds, told=2)
    one.step(row(inputs, 4), labels[4])
    other.step(row(inputs, 4), labels[4])
    one.tell(tickets[3], labels[3])
    other.tell(again[3], labels[3])
    one.forget(before=tickets[3])
    other.forget(again[1])
    law(one.outstanding == 0, counted, left=0, outstanding=one.outstanding)
    law(saved(one) == saved(other), "the same late labels lead to the same bits", by=one)
