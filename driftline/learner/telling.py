"""Many tickets told together: as one run where they can be, or one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.inputs.taking import join
from driftline.learner.late import ToldRun
from driftline.learner.ticket import Ticket
from driftline.learner.transaction import Given
from driftline.typing import CheckedLabels, Labels

if TYPE_CHECKING:
    from driftline.learner.shell import Shell

__all__ = ["tell_rows", "told_loss"]

#: So many tickets are told one by one: to begin a run takes longer.
FEW = 10


def tell_rows(
    learner: Shell, tickets: Iterable[Ticket], labels: Labels, losses: Iterable[float] | None
) -> np.ndarray | None:
    """Learn from tickets; return what was paid for them, where a learner must know it."""
    if (labels is None) == (losses is None):
        raise InputError("expected labels, or losses=, and not both")
    if isinstance(tickets, (Ticket, str)) or not isinstance(tickets, Iterable):
        raise InputError(f"expected a list of tickets, but got {tickets!r:.80}")
    given, told = list(tickets), _listed(labels if losses is None else losses)
    if len(given) != len(told):
        what = "labels" if losses is None else "losses"
        raise InputError(f"there are {len(given)} tickets but {len(told)} {what}")
    if not given:
        return None
    with learner._turn.lock:
        learner._turn.check()
        together = len(given) > FEW and learner._tells_together
        rows, rounds = _plain_rounds(learner, given) if together else None, list[Rows]()
        if rows is None:
            rounds = _rounds_of(learner, given)
            rows = join(rounds) if together else None
        checked = _all_feedback(learner, given, labels, told, losses is not None)
        paid = learner._paid_then(given, checked, rounds[0] if rows is None else rows)
        if rows is None:
            with learner._shield():
                _tell_each(learner, given, rounds, checked, paid)
        else:
            rows.check_labels(checked)
            numbers = np.array([ticket.number for ticket in given])
            then = np.array([ticket.rounds for ticket in given])
            now = then == learner.rounds + np.arange(len(given))
            late = ToldRun(learner._tickets, numbers, paid, now)
            learner._run(rows, checked, Given(audit=False, late=late))
        return paid


def _plain_rounds(learner: Shell, tickets: Sequence[Ticket]) -> Rows | None:
    """Return the inputs of many tickets, if all are outstanding and have plain vectors.

    None says nothing: :meth:`_rounds_of` then looks at each, and says what is wrong.
    """
    inputs = [ticket.input if isinstance(ticket, Ticket) else None for ticket in tickets]
    first, own_id = inputs[0], learner._identify()
    if learner._layout.ragged or not isinstance(first, np.ndarray) or first.ndim != 1:
        return None
    shape, kind = first.shape, first.dtype
    for own, ticket in zip(inputs, tickets, strict=True):
        if type(own) is not np.ndarray or own.shape != shape or own.dtype != kind:
            return None
        if ticket.learner != own_id or type(ticket.number) is not int:
            return None
        if type(ticket.rounds) is not int or not 0 <= ticket.rounds <= learner._tickets:
            return None
    numbers = [ticket.number for ticket in tickets]
    if len(set(numbers)) < len(numbers) or min(numbers) < 0 or max(numbers) >= learner._tickets:
        return None
    if not learner._outstanding.has_all(np.array(numbers, dtype=np.int64)):
        return None
    return learner._layout.rows(np.array(inputs))


def _rounds_of(learner: Shell, tickets: Sequence[Ticket]) -> list[Rows]:
    """Return the inputs of tickets that are outstanding, each in the list once."""
    made, seen = [], set[int]()
    for i, ticket in enumerate(tickets):
        try:
            learner._check_ticket(ticket)
            if ticket.number in seen:
                raise InputError(f"ticket {ticket.number} is in the list twice")
            made.append(learner._row(ticket.checked_input()))
        except InputError as error:
            raise _at_place(i, tickets, error) from error
        seen.add(ticket.number)
    return made


def _all_feedback(
    learner: Shell, tickets: Sequence[Ticket], labels: Labels, told: list[Any], losses: bool
) -> CheckedLabels:
    """Return the checked labels of tickets, or what a learner sees of them."""
    if learner.feedback.full and not losses:
        try:
            return learner.task.labels.check_all(labels if isinstance(labels, np.ndarray) else told)
        except InputError:  # then one by one, to say which
            pass
    made = []
    for i, (ticket, own) in enumerate(zip(tickets, told, strict=True)):
        try:
            given = (None, told_loss(own)) if losses else (own, None)
            made.append(learner.feedback.seen(learner.task, ticket, *given))
        except InputError as error:
            raise _at_place(i, tickets, error) from error
    if learner.feedback.full:  # in the form of many
        return learner.task.labels.check_all([learner.task.labels.value(label) for label in made])
    return made


def _tell_each(
    learner: Shell,
    tickets: Sequence[Ticket],
    rounds: Sequence[Rows],
    labels: CheckedLabels,
    paid: np.ndarray | None,
) -> None:
    """Learn from one ticket after the other; if one is refused, go back to before the first.

    If none can be, there is no copy: after an exception those are told whose rounds count.
    """
    before, rounds_before, i = None, learner.rounds, 0
    if len(tickets) > 1 and not learner._accepts(rounds):
        before = learner._checkpoint(weights=True)
    try:
        for i, (ticket, row, label) in enumerate(zip(tickets, rounds, labels, strict=True)):
            learner._learn_ticket(row, label, ticket, None if paid is None else paid[i])
        learner._finish(tickets)
    except BaseException as error:
        if before is None:
            learner._finish(tickets[: learner.rounds - rounds_before])
        else:
            learner._rollback(before)
        if isinstance(error, InputError) and len(tickets) > 1:
            raise _at_place(i, tickets, error) from error
        raise


def told_loss(given: Any) -> float:
    """Return a loss that was told, if it is a number."""
    if np.ndim(given) or np.asarray(given).dtype.kind not in "biuf":
        raise InputError(f"loss= must be a number, not {given!r:.80}")
    return float(given)


def _listed(labels: Any) -> list[Any]:
    """Return labels or losses as a list."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"expected a list with one for every ticket, but got {labels!r:.80}")
    return list(labels)


def _at_place(place: int, tickets: Sequence[Ticket], error: InputError) -> InputError:
    """Return the error of one ticket, with its place in a list of several."""
    return InputError(f"place {place} of the list: {error}") if len(tickets) > 1 else error
