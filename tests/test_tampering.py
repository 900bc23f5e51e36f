"""A law of audits: whichever entry of a record is changed, of any learner, the audit finds it."""

import dataclasses

import numpy as np
import pytest
from test_late_labels import HIDDEN, LEARNERS, X, Y

import driftline as dl
from driftline.members import Tables

T = dl.tasks
LEVELS, GRADES = T.Ordinal(4), np.digitize(X[:, 0], [-0.7, 0.0, 0.7])

CASES = {name: (make, X, Y) for name, make in LEARNERS.items()} | HIDDEN
CASES["one book"] = (lambda: dl.auto(LEVELS, effort="fast", budget=1.5), X, GRADES)
CASES["signs"] = (lambda: Tables(T.Binary(), pairs=0), X, np.where(Y > 0, 1, -1))
CASES["levels"] = (lambda: dl.auto(LEVELS, effort="fast"), X, GRADES)
CASES["tags"] = (lambda: dl.auto(T.Multilabel(2), effort="fast"), X, (X[:, :2] > 0.0).astype(int))

#: Columns that no claim is based on: what a solver left; and the sample weights of members, which
#: are the committee's.
UNUSED = ("gap", "sample_weight")

#: Columns that are repeated, or paid for: totals follow from them.
BELIEVED = ("prediction", "eta", "restarted")


def tampered(column, t):
    """Return a column with another entry in round t, of a kind that a run may record."""
    made, own = column.copy(), column[t]
    if column.dtype == bool:
        made[t] = not own
    elif column.dtype.kind == "i":
        others = [row for row in column if np.shape(row) == np.shape(own) and np.any(row != own)]
        if not others:
            return None
        made[t] = others[0]
    else:
        made[t] = 0.5 * own + 0.2718
    return made


def forgeries(trace, t):
    """Yield a name and a trace with one changed entry for every column, also of members."""
    for name in trace.columns():
        member, _, own = name.rpartition(".")
        whole = trace.members[int(member)] if member else trace
        column = None if own in UNUSED else tampered(getattr(whole, own), t)
        if column is None:
            continue
        changed = dataclasses.replace(whole, **{own: column})
        if member:
            members = list(trace.members)
            members[int(member)] = changed
            changed = dataclasses.replace(trace, members=tuple(members))
        yield name, changed


@pytest.mark.parametrize("delay", [None, 7])
@pytest.mark.parametrize("name", CASES)
def test_every_changed_entry_is_found(name, delay):
    make, inputs, labels = CASES[name]
    learner = make()
    learner.run(inputs[:10], labels[:10])
    trace = learner.run(inputs[10:], labels[10:], delay=delay, audit=True)
    steps = isinstance(learner, dl.OGD)
    against = dl.comparators.Fixed(np.zeros_like(learner.weights)) if steps else None
    honest = dl.certify(trace, against, inputs[10:], labels[10:])
    assert honest.valid, str(honest)
    for column, forged in forgeries(trace, 40):
        try:
            made = dl.certify(forged, against, inputs[10:], labels[10:])
        except dl.InputError:
            continue
        assert made.findings and not made.valid, column
        if column.rpartition(".")[2] not in BELIEVED:
            assert made.expected == pytest.approx(honest.expected), column
