"""The laws of learners: all ways to play a stream give the same bits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from driftline.checks.base import law
from driftline.checks.learner_growth import check_growth
from driftline.checks.learner_refusals import check_refusals, check_tickets
from driftline.checks.learner_rows import check_rows
from driftline.checks.learner_seeds import check_seeds
from driftline.checks.learner_stream import (
    equal,
    features_of,
    other_labels,
    planted,
    row,
    saved,
)
from driftline.errors import InputError
from driftline.learner import OGD, Facts, Learner, Ticket
from driftline.losses import Scaled
from driftline.state import archive
from driftline.state.loading import load
from driftline.typing import Inputs, Labels

__all__ = ["check_learner"]

#: The relative difference that losses of compiled and plain parts may have, because of solvers.
SAME = 1e-6

#: The most passes over wrong labels, after which a learner must predict something else.
PASSES = 10


def check_learner(
    learner: Learner,
    inputs: Inputs = None,
    labels: Labels = None,
    *,
    rounds: int = 40,
    seed: int = 0,
) -> None:
    """Check that a new learner obeys the contract of :class:`~driftline.Learner`.

    Steps, halves of steps, pieces of a stream, and learners that were saved and loaded, or
    restored, have the same bits as one run. Predicting changes nothing, and a snapshot does not
    change. Rounds and features are counted. What is refused changes nothing: a row, a stream with a
    bad row in the middle, or a ticket that is old, told already or another learner's. Tickets that
    are asked for and told together have the bits of single ones, all or none. A seed decides the
    draws. A learner that was grown goes on as before. Bits are those of the file that
    ``save`` writes, without the id of the learner.

    For an :class:`~driftline.OGD`, compiled parts must do what plain ones do, and a scaled loss
    must be recorded scaled, so that a kernel that ignores its parameters is detected.

    Parameters
    ----------
    learner
        A learner that has not played. It is not changed: copies of it play.
    inputs, labels
        A stream to play, of 8 rounds or more. Default: a planted one, where there is one for the
        task.

    Examples
    --------
    >>> import driftline as dl
    >>> check_learner(dl.auto(dl.tasks.Binary(), effort="fast"))
    """
    law(isinstance(learner, Learner), "a learner is a driftline.Learner", given=learner)
    if learner.rounds:
        raise InputError(f"expected a new learner, but {learner!r} has played {learner.rounds}")
    if inputs is None:
        inputs, labels = planted(learner, rounds, seed)
    if len(labels) < 8:
        raise InputError(f"expected a stream of 8 rounds or more, but got {len(labels)}")
    _check_facts(learner, inputs, labels)
    _check_looks(learner, inputs, labels)
    _check_rounds(learner, inputs, labels)
    _check_values(learner, inputs, labels)
    _check_snapshots(learner, inputs, labels)
    check_refusals(learner, inputs, labels)
    check_tickets(learner, inputs, labels)
    check_rows(learner, inputs, labels)
    check_seeds(learner, inputs, labels)
    check_growth(learner, inputs, labels)
    if isinstance(learner, OGD):
        _check_engines(learner, inputs, labels)


def _check_facts(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that rounds are counted however they are played, and that features are known."""
    one, features = learner.copy(), features_of(inputs)
    words = "a learner knows its number of features after the first round, and None before it"
    law(one.features in (None, features), words, before=one.features, inputs=features)
    law(saved(one) == saved(learner), "equal learners are saved as equal bytes", learner=learner)
    played, counted = 0, "rounds are counted"
    calls = {
        "step": (1, lambda t: one.step(row(inputs, t), labels[t])),
        "learn_row": (1, lambda t: one.learn_row(row(inputs, t), labels[t])),
        "ask": (0, lambda t: one.ask(row(inputs, t))),
        "ask_rows": (0, lambda t: one.ask_rows(inputs[t : t + 2])),
        "tell": (1, lambda t: one.tell(one.ask(row(inputs, t)), labels[t])),
        "predict": (0, lambda t: one.predict(row(inputs, t))),
        "run": (2, lambda t: one.run(inputs[t : t + 2], labels[t : t + 2])),
        "learn_rows": (2, lambda t: one.learn_rows(inputs[t : t + 2], labels[t : t + 2])),
    }
    for name, (rounds, call) in calls.items():
        call(played)
        played += rounds
        law(one.rounds == played, f"{counted} by {name}", rounds=one.rounds, played=played)
        law(one.features == features, words, features=one.features, inputs=features)
    law(isinstance(one.describe(), str), "describe returns words", learner=learner)


def _check_rounds(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that steps, halves, single rows and pieces have the bits of one run."""
    ran, stepped, told, singly, pieces = (learner.copy() for _ in range(5))
    trace = ran.run(inputs, labels)
    for t, label in enumerate(labels):
        x = row(inputs, t)
        ticket = told.ask(x)
        told.tell(Ticket.from_bytes(ticket.to_bytes()) if t % 2 else ticket, label)
        singly.learn_row(x, label)
        made = stepped.step(x, label).prediction
        recorded = np.ravel(trace.prediction[t])[: np.size(made)]
        words = "steps, tickets and runs predict the same"
        law(equal(made, ticket.prediction), words, round=t, step=made, ask=ticket.prediction)
        law(
            equal(stepped.task.predictions.numbers(made), recorded),
            words,
            round=t,
            step=made,
            run=recorded,
        )
        if (
            getattr(ran, "facts", Facts()).feedback != "clicks"
        ):  # whose loss is that of what was shown
            paid, said = (
                ran.task.loss(ran.task.predictions.value(recorded), label),
                trace.target_loss[t],
            )
            close = abs(paid - said) <= 1e-9 * (1.0 + abs(paid))
            words = "the recorded prediction costs the recorded target loss"
            law(close, words, round=t, prediction=recorded, costs=paid, recorded=said)
    cut = len(labels) // 3
    for part in (slice(0, cut), slice(cut, None)):
        pieces.learn_rows(inputs[part], labels[part])
    others = {"steps": stepped, "tickets": told, "single rows": singly, "pieces": pieces}
    expected = saved(ran)
    for name, other in others.items():
        law(saved(other) == expected, f"{name} lead to the state of a run", learner=learner)


def _check_values(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that a state can be copied, saved and restored, and goes on as it would have."""
    cut = len(labels) // 2
    one = learner.copy()
    one.run(inputs[:cut], labels[:cut])
    state, copied = one.state, one.copy()
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(one.save(Path(folder) / "learner"))
    one.run(inputs[cut:], labels[cut:])
    restored = learner.copy()
    restored.restore(state)
    others = {"copied": copied, "saved and loaded": loaded, "restored": restored}
    expected = saved(one)
    for name, other in others.items():
        law(other.rounds == cut, f"what was {name} is where it was", rounds=other.rounds)
        other.run(inputs[cut:], labels[cut:])
        law(saved(other) == expected, f"what was {name} goes on with the same bits", by=learner)


def _check_looks(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that predicting changes nothing."""
    cut = len(labels) // 2
    one = learner.copy()
    one.run(inputs[:cut], labels[:cut])
    before, rows = saved(one), [row(inputs, t) for t in range(cut, len(labels))]
    seen = [one.predict(x) for x in rows]
    again = [one.predict(x) for x in rows]
    law(all(map(equal, seen, again)), "predictions are the same when they are asked for again")
    law(saved(one) == before, "predicting writes nothing", learner=learner)
    ticket = one.ask(rows[0])
    law(equal(ticket.prediction, seen[0]), "predict says what ask would say", ask=ticket)
    words = "asking changes nothing but the next ticket, and which are outstanding"
    law(_is_one_more(before, saved(one)), words, by=learner)


def _check_snapshots(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that a snapshot does not change while the learner learns to predict otherwise."""
    one, rows = learner.copy(), [row(inputs, t) for t in range(len(labels))]
    one.run(inputs, labels)
    seen, fixed, rounds = [one.predict(x) for x in rows], one.snapshot(), one.rounds
    words = "a snapshot predicts what the learner does"
    law(all(map(equal, seen, map(fixed.predict, rows))), words, learner=learner)
    wrong = other_labels(learner, labels)
    for _ in range(PASSES):
        one.run(inputs, wrong)
        if not all(map(equal, seen, map(one.predict, rows))):
            break
    law(all(map(equal, seen, map(fixed.predict, rows))), "a snapshot stays", learner=learner)
    law(fixed.rounds == rounds, "a snapshot stays, and knows its rounds", rounds=fixed.rounds)


def _check_engines(learner: OGD, inputs: Inputs, labels: Labels) -> None:
    """Check compiled parts against plain ones, and a loss against a multiple of it."""
    from driftline.engines import PlainEngine

    one, plain = learner.copy(), learner.copy()
    plain.engine = PlainEngine(plain.parts)
    if (state := one.state).weights is not None:
        state = state.replaced(weights=state.weights.astype(np.float64))
    plain.restore(state)
    columns = ("loss", "risk", "grad_sq", "eta")
    made, expected = one.run(inputs, labels), plain.run(inputs, labels)
    slack = SAME if learner.engine.dtype == np.float64 else 1e-3
    for name in columns:
        got, wanted = getattr(made, name), getattr(expected, name)
        close = np.allclose(got, wanted, rtol=slack, atol=slack)
        law(close, f"compiled and plain parts have the same {name}", compiled=got, plain=wanted)
    if isinstance(learner.loss, Scaled):
        inner, factor = learner.loss.loss, learner.loss.factor
        x, label = row(inputs, 0), labels[0]
        theta = learner.copy().scores(x)
        value, _ = inner.value_and_grad(
            theta, learner.task.labels.value(learner.task.labels.check(label))
        )
        words, wanted = "a scaled loss is recorded scaled", factor * value
        law(np.isclose(made.loss[0], wanted), words, loss=made.loss[0], scaled=wanted)


def _is_one_more(before: bytes, after: bytes) -> bool:
    """Return whether two files differ in one whole number, which has grown by 1.

    And in the list of outstanding tickets, which has one more entry, in whose they are, and in what
    a guard has reserved for them.
    """
    (about, arrays), (more, others) = (
        archive.unpacked(content, "the learner") for content in (before, after)
    )
    waiting = arrays.pop("outstanding", np.zeros(0, dtype=np.int64))
    waits = others.pop("outstanding", waiting)
    for name in ("reserved", "reserved.numbers"):
        arrays.pop(name, None), others.pop(name, None)
    same = arrays.keys() == others.keys() and all(
        arrays[name].tobytes() == others[name].tobytes() for name in arrays
    )
    same = same and (waits is waiting or np.array_equal(waits[:-1], waiting))
    leaves, changed = (
        {name: leaf for name, leaf in _leaves(data) if not name.endswith("/identity")}
        for data in (about, more)
    )
    differ = [name for name in leaves | changed if leaves.get(name) != changed.get(name)]
    return same and len(differ) == 1 and leaves[differ[0]] + 1 == changed[differ[0]]


def _leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers and strings in plain data, each with its path."""
    if isinstance(data, (dict, list)):
        for name, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _leaves(value, f"{path}/{name}")
    else:
        yield path, data
