"""Laws of learners: many tickets at once are one after the other, or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from driftline.checks.base import law
from driftline.checks.learner_stream import Refused, check_refused, row, saved, spoiled
from driftline.learner import Facts, Learner, Ticket
from driftline.typing import Inputs, Labels

__all__ = ["check_rows"]


def check_rows(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that tickets asked for and told together have the bits of single ones."""
    cut = len(labels) // 2
    played = learner.copy()
    played.run(inputs[:cut], labels[:cut])
    for one in (learner.copy(), played):
        _check_equal(one, inputs, labels)
        if getattr(one, "facts", Facts()).feedback == "full":
            _check_admitted(one, inputs, labels)
        tickets = one.ask_rows(inputs[:3])
        one.forget(tickets[1])
        check_refused(one, _refused(one, inputs, labels, *tickets))
    law(one.ask_rows(inputs[:0]) == [], "no inputs have no tickets", learner=learner)
    one.tell_rows([], [])


def _check_equal(one: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that asking and telling many is asking and telling each, in any order and mix."""
    other, count = one.copy(), min(14, len(labels))
    for _ in range(2):
        tickets = one.ask_rows(inputs[:count])
        again = [other.ask(row(inputs, t)) for t in range(count)]
        same = [_alike(a, b) for a, b in zip(tickets, again, strict=True)]
        law(all(same), "ask_rows returns the tickets of ask, one after the other", equal=same)
        words = "asking for many tickets changes what asking for each does"
        law(saved(one) == saved(other), words, by=one)
        order = [2, 0, *range(count - 1, 2, -1)]  # number 1 comes late
        for piece in (order[:2], order[2:], [1]):
            fresh, known = one.ask(row(inputs, 0)), other.ask(row(inputs, 0))
            told = [fresh, *(tickets[t] for t in piece)]
            one.tell_rows(told, _picked(labels, [0, *piece]))
            for ticket, t in zip([known, *(again[t] for t in piece)], [0, *piece], strict=True):
                other.tell(ticket, labels[t])
            words = "tell_rows leads to the state of tell, one after the other"
            law(saved(one) == saved(other), words, by=one)
            law(one.outstanding == other.outstanding, "told tickets are not outstanding", by=one)


def _check_admitted(one: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that a ticket of a copy, once it is admitted, is one of the learner's own."""
    other, before = one.copy(), saved(one)
    own = one.ask(row(inputs, 0))
    (theirs,) = other.copy().ask_rows(inputs[:1], numbers=[own.number])
    law(saved(other) == before, "asking a copy changes nothing here", by=other)
    admitted = other.admit(theirs)
    law(_alike(admitted, own), "an admitted ticket is as one's own", by=other)
    one.tell(own, labels[0])
    other.tell(admitted, labels[0])
    law(saved(one) == saved(other), "an admitted ticket is told as one's own", by=other)


def _alike(one: Ticket, other: Ticket) -> bool:
    """Say whether two tickets are equal but for the id of the learner."""
    return replace(one, learner=other.learner).to_bytes() == other.to_bytes()


def _picked(labels: Labels, places: list[int]) -> Labels:
    """Return some labels in the form that a stream has."""
    return labels[places] if hasattr(labels, "shape") else [labels[t] for t in places]


def _refused(
    one: Learner, inputs: Inputs, labels: Labels, first: Ticket, second: Ticket, third: Ticket
) -> Iterator[Refused]:
    """Yield lists with one bad entry, of which nothing may be learned or asked for.

    The second ticket is forgotten.
    """
    unchanged = "what is refused in a list changes nothing"
    bad = spoiled(inputs[:5], 3)
    yield "ask_rows refuses a row that is not finite", unchanged, lambda: one.ask_rows(bad)
    lists: dict[str, list[Any]] = {
        "a ticket that comes twice": [first, third, first],
        "a ticket that is not outstanding": [first, third, second],
        "a ticket of another learner": [first, replace(third, learner="another")],
        "what is no ticket": [first, "a ticket"],
    }
    for what, tickets in lists.items():
        yield _telling(one, what, tickets, labels[: len(tickets)])
    yield _telling(one, "fewer labels than tickets", [first, third], labels[:1])


def _telling(one: Learner, what: str, tickets: list[Any], labels: Labels) -> Refused:
    unchanged = f"what tell_rows refuses changes nothing: {what}"
    return f"tell_rows refuses {what}", unchanged, lambda: one.tell_rows(tickets, labels)
