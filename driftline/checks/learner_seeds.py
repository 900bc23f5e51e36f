"""Laws of learners: a seed decides the draws."""

from __future__ import annotations

import itertools

import numpy as np

from driftline.checks.base import law
from driftline.checks.learner_stream import equal, row, saved
from driftline.learner import Learner
from driftline.state import archive
from driftline.typing import Input, Inputs, Labels, Prediction

__all__ = ["check_seeds"]

#: How many seeds are tried, and how often a row is asked to see whether predictions are random.
SEEDS, ASKS = 4, 8


def check_seeds(learner: Learner, inputs: Inputs, labels: Labels) -> None:
    """Check that a seed given to ``run`` decides all draws from there on, and nothing else does."""
    begun = [_begun(learner, inputs, labels, seed) for seed in range(SEEDS)]
    again = _begun(learner, inputs, labels, 0)
    words = "the same seed leads to the same bits"
    law(saved(again) == saved(begun[0]), words, learner=learner)
    draws = [_asked(one.copy(), inputs) for one in begun]
    law(all(map(equal, draws[0], _asked(again, inputs))), words, learner=learner)
    drawn = any(not equal(made[0], other) for ask in draws for made in ask for other in made)
    differ = any(not all(map(equal, draws[0], other)) for other in draws[1:])
    law(differ or not drawn, "another seed draws other numbers", learner=learner)
    arrays = [archive.unpacked(saved(one), "the learner")[1] for one in begun]
    for one in begun:
        one.run(inputs[1:], labels[1:], seed=SEEDS)
    ends = [saved(one) for one in begun]
    for i, j in itertools.combinations(range(SEEDS), 2):
        if _learned_alike(arrays[i], arrays[j]):
            law(ends[i] == ends[j], "a seed decides all draws that follow", learner=learner)


def _begun(learner: Learner, inputs: Inputs, labels: Labels, seed: int) -> Learner:
    """Return a learner that has played one round with a seed."""
    one: Learner = learner.copy()
    one.run(inputs[:1], labels[:1], seed=seed)
    return one


def _asked(one: Learner, inputs: Inputs) -> list[list[Prediction]]:
    """Return the predictions of some rows, each several times, of which none stays outstanding."""
    return [[_forgotten(one, row(inputs, t)) for _ in range(ASKS)] for t in range(8)]


def _forgotten(one: Learner, x: Input) -> Prediction:
    ticket = one.ask(x)
    one.forget(ticket)
    return ticket.prediction


def _learned_alike(arrays: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> bool:
    """Return whether two learners have learned the same numbers, whatever their draws are."""
    return arrays.keys() == others.keys() and all(
        np.array_equal(arrays[name], others[name]) for name in arrays
    )
