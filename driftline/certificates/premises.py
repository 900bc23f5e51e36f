"""Which theorem covers a learner, and with which constants."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from driftline.certificates.certificate import Premises
from driftline.theorem import no_theorem
from driftline.trace import Trace

__all__ = ["premises_of", "told_late"]


def premises_of(learner: Any, first_weights: np.ndarray | None = None) -> Premises:
    """Return the constants of the worst-case bound of a run, or why there is none.

    A learner of :mod:`driftline.certificates.replay` has a ``floor``, which is a lower bound of its
    steps. ``first_weights`` are those before the first round, where they are known.
    """
    task = learner.task
    if not learner._fixed.steps:
        reason = f"{type(learner).__name__} has no theorem: {learner._fixed.no_theorem}"
        most, guess = task.largest_loss, task.guess.words
        return Premises(math.inf, 0.0, 0.0, most, guess, no_theorem=reason, no_bound=reason)
    engine, parts = learner.engine, learner.parts
    input_sq, domain, steps = (
        engine.largest_input_sq,
        parts.domain,
        parts.rate.step_range(parts.setting),
    )
    floor = min(steps.least(input_sq), getattr(learner, "floor", 0.0) or math.inf)
    first, spared = domain.diameter, 0.0
    if first_weights is not None and math.isfinite(first) and floor > 0.0:
        near = steps.start(first, domain.farthest(first_weights), floor)
        spared = steps.start(first, first, floor) - near
    return Premises(
        domain.diameter,
        floor,
        task.guess.loss,
        task.largest_loss,
        task.guess.words,
        parts.loss.convex,
        no_theorem(parts, math.sqrt(input_sq)),
        1.0 if steps.monotone or not floor > 0.0 else steps.most / floor,
        parts.decoder.theorem,
        float(np.finfo(engine.dtype).eps),
        spared=spared,
    )


def told_late(made: Premises, learner: Any, trace: Trace, order: np.ndarray) -> Premises:
    r"""Return what was known beforehand of a run whose labels came late, in this order.

    The theorem holds for a constant step of :math:`\alpha / ((1 + 2 d) M)` at most, over the
    largest squared input, if no more than d labels come between a prediction and its own: then
    residuals never add up to more than 0.
    """
    parts, steps = learner.parts, trace.eta[order]
    assert trace.arrival is not None and trace.known is not None
    between = int((trace.arrival - trace.known)[order].max())
    most = parts.decoder.surrogate_gap / parts.loss.self_bound / (1 + 2 * between)
    small = bool(steps.max() * learner.engine.largest_input_sq <= most * (1.0 + 1e-9))
    if small and np.ptp(steps) == 0.0 and trace.sample_weight is None:
        return replace(made, theorem=f"{made.theorem}, at most {between} labels in between")
    words = (
        f"labels came late, up to {between} of them between a prediction and its own: the theorem "
        f"is for constant steps of {most:.3g} at most then, over the largest squared input"
    )
    return replace(made, no_theorem=words)
