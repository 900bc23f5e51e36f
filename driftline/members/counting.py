"""What kernels of counting members share, compiled into each: a record of a round, and checks."""

from __future__ import annotations

import math

import numpy as np

from driftline.errors import InputError
from driftline.kernels import TRACE_COLUMNS, helper
from driftline.tasks.abstaining import log_sum

__all__ = ["all_finite", "check_weights", "settle", "weight_of"]

LOSS, RISK, TARGET, ETA, GRAD = range(len(TRACE_COLUMNS))


@helper
def all_finite(x):
    """Say whether all entries of a row are finite."""
    for j in range(x.size):
        if not abs(x[j]) < math.inf:
            return False
    return True


@helper
def weight_of(sample_weight, t):
    """Return the sample weight of round t."""
    return sample_weight[t] if sample_weight.size > 0 else 1.0


@helper
def settle(scores, label, weight, constants, t, trace, predictions):
    """Record round t: the prediction, its target loss, and ``-ln p(label)``, times its weight.

    The last two constants are up to which ``-ln p`` the most probable class is predicted, and the
    cost of no answer. Return that class.
    """
    top = 0
    for k in range(1, scores.size):
        if scores[k] > scores[top]:
            top = k
    doubt = log_sum(scores, top)
    trace[LOSS, t] = weight * max(0.0, doubt + scores[top] - scores[label])
    predictions[t, 0] = top
    trace[RISK, t] = 0.0 if top == label else weight
    if doubt > constants[constants.size - 2]:
        predictions[t, 0] = -1
        trace[RISK, t] = weight * constants[constants.size - 1]
    trace[TARGET, t] = trace[RISK, t]
    trace[ETA, t] = 1.0
    trace[GRAD, t] = 0.0
    return top


def check_weights(weights: np.ndarray, seen: int) -> None:
    """Refuse sample weights of 0 among kept rows; ``seen`` rows fill the first."""
    if (weights[:seen] <= 0.0).any():
        raise InputError("rows that are kept count more than 0")
