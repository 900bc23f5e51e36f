"""Laws of learners: one that was grown goes on as before."""

from __future__ import annotations

import numpy as np

from driftline.checks.base import law
from driftline.checks.learner_stream import equal, features_of, longer, row, saved
from driftline.errors import InputError
from driftline.learner import Learner, Shell
from driftline.state import archive
from driftline.typing import Inputs, Labels

__all__ = ["check_growth"]

#: The share of predictions that must stay the same with new features of 0. Scaling divides by the
#: root of the number of features, so that predictions may become less certain.
KEPT = 0.75


def check_growth(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check growing, where it is not refused: more features, more classes, none of either."""
    cut, features, classes = len(labels) // 2, features_of(inputs), _classes(learner)
    one = learner.copy()
    one.run(inputs[:cut], labels[:cut])
    for sizes in ({"features": features}, {"classes": classes}):
        if (same := _grown(one, sizes)) is not None:
            _check_same(one, same, inputs[cut:], labels[cut:])
    if (more := _grown(one, {"features": features + 1})) is not None:
        wide = longer(inputs, 1)
        _check_more(one, more)
        words = "what has grown is for as many features as it was grown for"
        law(more.features == features + 1, words, features=more.features)
        rows = [(row(inputs, t), row(wide, t)) for t in range(len(labels))]
        kept = np.mean([equal(one.predict(x), more.predict(z)) for x, z in rows])
        words = f"what has grown predicts old rows as before, {KEPT:.0%} of them or more"
        law(kept >= KEPT, words, share=kept)
        more.run(wide[cut:], labels[cut:])
    if (more := _grown(one, {"classes": classes + 1})) is not None:
        _check_more(one, more)
        words = "what has grown is for as many classes as it was grown for"
        law(more.task.dim == classes + 1, words, task=more.task)
        more.predict(row(inputs, cut))


def _classes(learner: Learner) -> int:
    """Return the number of classes, 1 where rounds have different numbers of scores."""
    return 1 if learner.task.layout.ragged else learner.task.dim


def _grown(one: Learner, sizes: dict[str, int]) -> Learner | None:
    """Return a learner for larger sizes, None if it cannot grow to them."""
    before = saved(one)
    try:
        made: Learner | None = one.grown(**sizes)
    except InputError:
        made = None
    law(saved(one) == before, "growing leaves the learner as it was", learner=one)
    return made


def _check_same(one: Learner, same: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check a learner that was grown to its own size."""
    by_itself = one.copy()
    words = "what is grown by nothing goes on with the same bits"
    law(saved(same) == saved(by_itself), words, learner=one)
    by_itself.run(inputs, labels)
    same.run(inputs, labels)
    law(saved(same) == saved(by_itself), words, learner=one)


def _check_more(one: Learner, more: Learner) -> None:
    """Check that a larger learner has the same rounds, and what was learned before."""
    words = "what has grown has learned from as many rounds"
    law(more.rounds == one.rounds, words, rounds=more.rounds, before=one.rounds)
    if isinstance(one, Shell):  # then it is known how what is remembered grows: by zeros
        held, holds = (archive.unpacked(saved(made), "the learner")[1] for made in (one, more))
        for name, numbers in held.items():
            kept = np.isin(numbers[numbers != 0.0], holds.get(name, ())).all()
            law(kept, "what has grown remembers what was learned before", lost=name)
