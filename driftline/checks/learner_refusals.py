"""Laws of learners: what is refused changes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from driftline.checks.learner_stream import Refused, check_refused, row, spoiled
from driftline.learner import Learner
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
    """Check that a ticket is told once, to its own learner, before the next round."""
    one, label = learner.copy(), labels[0]
    one.run(inputs, labels)
    ticket = one.ask(row(inputs, 0))

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
    one.step(row(inputs, 1), labels[1])
    check({"a ticket from before the last round": ticket})
    ticket = one.ask(row(inputs, 0))
    one.tell(ticket, label)
    check({"a ticket that was told already": ticket, "what is no ticket": "a ticket"})
