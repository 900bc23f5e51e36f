"""The laws of learners: all ways to play a stream are one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from driftline.checks.base import law
from driftline.errors import InputError
from driftline.learner import OGD, Learner, Ticket
from driftline.losses import Scaled
from driftline.state.loading import load
from driftline.streams import Planted, PlantedRankings, PlantedSequences

__all__ = ["check_learner"]

#: How far losses of compiled and plain parts may be apart, as a share: solvers are no nearer.
SAME = 1e-6


def check_learner(
    learner: Learner, inputs: Any = None, labels: Any = None, *, rounds: int = 40, seed: int = 0
) -> None:
    """Check that a new learner keeps the page of :class:`~driftline.Learner`.

    Steps, halves of steps, pieces of a stream, what was saved and loaded, and what was restored
    have the same bits as one run; looking writes nothing; a snapshot stays; what is refused changes
    nothing. Of an :class:`~driftline.OGD`, compiled parts do what plain ones do, and a scaled
    loss is recorded scaled: a kernel that ignores its parameters is found out.

    Parameters
    ----------
    learner
        One that has not played. It is left as it is: copies of it play.
    inputs, labels
        A stream to play, of 8 rounds or more. Default: a planted one, where there is one for the
        task.

    Examples
    --------
    >>> import driftline as dl
    >>> check_learner(dl.auto(dl.tasks.Multiclass(3)))
    """
    law(isinstance(learner, Learner), "a learner is a driftline.Learner", given=learner)
    if learner.rounds:
        raise InputError(f"expected a new learner, but {learner!r} has played {learner.rounds}")
    if inputs is None:
        inputs, labels = _planted(learner, rounds, seed)
    if len(labels) < 8:
        raise InputError(f"expected a stream of 8 rounds or more, but got {len(labels)}")
    _check_rounds(learner, inputs, labels)
    _check_values(learner, inputs, labels)
    _check_looks(learner, inputs, labels)
    _check_refusals(learner, inputs, labels)
    if isinstance(learner, OGD):
        _check_engines(learner, inputs, labels)


def _check_rounds(learner: Learner, inputs: Any, labels: Any) -> None:
    """Check that steps, halves and pieces are one run."""
    ran, stepped, told, pieces = (learner.copy() for _ in range(4))
    trace = ran.run(inputs, labels)
    for t, label in enumerate(labels):
        x = _row(inputs, t)
        ticket = told.ask(x)
        told.tell(Ticket.from_bytes(ticket.to_bytes()) if t % 2 else ticket, label)
        made = stepped.step(x, label).prediction
        recorded = np.ravel(trace.prediction[t])[: np.size(made)]
        words = "steps, tickets and runs predict the same"
        law(_equal(made, ticket.prediction), words, round=t, step=made, ask=ticket.prediction)
        law(_equal(np.ravel(made), recorded), words, round=t, step=made, run=recorded)
    cut = len(labels) // 3
    for part in (slice(0, cut), slice(cut, None)):
        pieces.learn_rows(inputs[part], labels[part])
    for name, other in (("steps", stepped), ("tickets", told), ("pieces", pieces)):
        law(_saved(other) == _saved(ran), f"{name} lead to the state of a run", learner=learner)


def _check_values(learner: Learner, inputs: Any, labels: Any) -> None:
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
    for name, other in others.items():
        law(other.rounds == cut, f"what was {name} is where it was", rounds=other.rounds)
        other.run(inputs[cut:], labels[cut:])
        law(_saved(other) == _saved(one), f"what was {name} goes on with the same bits", by=learner)


def _check_looks(learner: Learner, inputs: Any, labels: Any) -> None:
    """Check that looking changes nothing, and that a snapshot stays."""
    cut = len(labels) // 2
    one = learner.copy()
    one.run(inputs[:cut], labels[:cut])
    before, rows = _saved(one), [_row(inputs, t) for t in range(cut, len(labels))]
    seen, fixed = [one.predict(x) for x in rows], one.snapshot()
    again = [one.predict(x) for x in rows]
    law(all(map(_equal, seen, again)), "predictions are the same when they are asked for again")
    law(_saved(one) == before, "predicting writes nothing", learner=learner)
    ticket = one.ask(rows[0])
    law(_equal(ticket.prediction, seen[0]), "predict says what ask would say", ask=ticket)
    after = _saved(one)
    same = {k for k in before[0]["state"] if before[0]["state"][k] == after[0]["state"].get(k)}
    words = "asking changes nothing but the number of the next ticket"
    law(before[1] == after[1] and set(before[0]["state"]) - same == {"tickets"}, words, by=learner)
    one.tell(ticket, labels[cut])
    one.run(inputs[cut:], labels[cut:])
    law(all(map(_equal, seen, map(fixed.predict, rows))), "a snapshot stays", learner=learner)


def _check_refusals(learner: Learner, inputs: Any, labels: Any) -> None:
    """Check that a bad input changes nothing."""
    one = learner.copy()
    one.run(inputs, labels)
    before, bad = _saved(one), _row(inputs, 0) * np.nan
    calls = {
        "step": lambda: one.step(bad, labels[0]),
        "ask": lambda: one.ask(bad),
        "predict": lambda: one.predict(bad),
    }
    for name, call in calls.items():
        refused = False
        try:
            call()
        except InputError:
            refused = True
        law(refused, f"{name} refuses an input that is not finite", learner=learner)
        law(_saved(one) == before, f"what {name} refuses changes nothing", learner=learner)


def _check_engines(learner: OGD, inputs: Any, labels: Any) -> None:
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
        x, label = _row(inputs, 0), labels[0]
        theta = learner.copy().scores(x)
        value, _ = inner.value_and_grad(theta, learner.task.label(learner.task.check_label(label)))
        words, wanted = "a scaled loss is recorded scaled", factor * value
        law(np.isclose(made.loss[0], wanted), words, loss=made.loss[0], scaled=wanted)


def _planted(learner: Learner, rounds: int, seed: int) -> tuple[Any, Any]:
    """Return a stream for a task: plain rows, chains of tags, or documents."""
    task: Any = learner.task
    stream: Any
    if not task.layout.ragged:
        stream = Planted(task, rounds=rounds, flips=2, seed=seed)
    elif hasattr(task, "tags"):
        stream = PlantedSequences(rounds=rounds, tags=task.tags, longest=4, seed=seed)
    else:
        stream = PlantedRankings(task, rounds=rounds, seed=seed)
    return stream.inputs, stream.labels


def _row(inputs: Any, t: int) -> Any:
    return inputs[[t]] if hasattr(inputs, "indptr") else inputs[t]


def _equal(one: Any, other: Any) -> bool:
    return np.array_equal(np.asarray(one), np.asarray(other))


def _saved(learner: Any) -> tuple[Any, Any]:
    """Return parts and state, in a form that can be compared."""
    about, arrays = learner.to_saved()
    return about, {name: (array.shape, array.tobytes()) for name, array in arrays.items()}
