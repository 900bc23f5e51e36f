"""Which theorem covers a learner, and with which constants."""

from __future__ import annotations

import math

import numpy as np

from driftline.certificates.certificate import Premises
from driftline.engines import Engine
from driftline.theorem import no_theorem

__all__ = ["premises_of"]


def premises_of(
    engine: Engine, least: float = 0.0, first_weights: np.ndarray | None = None
) -> Premises:
    """Return the constants of the worst-case bound of a run, or why there is none.

    ``least`` is a lower bound of the steps, where a better one is known than the parts give; else
    0. ``first_weights`` are those before the first round, where they are known.
    """
    parts, input_sq = engine.parts, engine.largest_input_sq
    task, domain = parts.task, parts.domain
    steps = parts.rate.step_range(parts.setting)
    floor = min(steps.least(input_sq), least or math.inf)
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
