"""Which theorem covers a learner, and with which constants."""

from __future__ import annotations

import math

import numpy as np

from driftline.certificates.certificate import Premises
from driftline.engines import Engine
from driftline.losses import ConvolutionalFenchelYoung
from driftline.rates import Constant, Polyak

__all__ = ["premises_of"]


def premises_of(engine: Engine, least: float = 0.0) -> Premises:
    """Return the constants of the worst case of all that was played, or why there is none.

    ``least`` is what no step can lie below, where more is known of it than the parts say; else 0.
    """
    parts, largest_input_sq = engine.parts, engine.largest_input_sq
    loss, decoder, rate, domain, *_ = parts
    floor = decoder.rate_floor / largest_input_sq if largest_input_sq > 0.0 else math.inf
    reason, spread = "", 1.0
    if not decoder.rate_floor > 0.0:
        reason = "loss and decoder have no surrogate gap"
    elif isinstance(rate, Constant):
        eta = rate.params(parts.setting)[0]
        if eta > floor * (1.0 + 1e-12):
            reason = f"the step {eta:.4g} is above the floor {floor:.4g} for inputs of this norm"
        floor = min(floor, eta)
    elif isinstance(rate, Polyak):
        floor = min(floor, rate.cap)  # of short inputs the cap is the least step
        if least > 0.0:
            floor = min(floor, least)
        if not rate.monotone:
            if math.isinf(rate.cap):
                reason = "the free rate has no cap, and its steps no bound known beforehand"
            spread = rate.cap / floor
    else:
        reason = f"{type(rate).__name__} may leave the admissible range"
    theorem = "theorem 2" if isinstance(loss, ConvolutionalFenchelYoung) else "theorem 1"
    return Premises(
        domain.diameter,
        floor,
        getattr(loss.task, "guess_loss", math.inf),
        loss.task.largest_loss,
        loss.task.guess,
        loss.convex,
        reason,
        spread,
        theorem,
        float(np.finfo(engine.dtype).eps),
    )
