"""Sample weights: the range in which they may lie, and their checks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["LEAST_WEIGHT", "MOST_WEIGHT", "checked_weights", "multiplied"]

#: The least sample weight beside 0, and the largest.
LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e6


def checked_weights(sample_weight: npt.ArrayLike | None, rounds: int) -> np.ndarray | None:
    """Return a copy of sample weights, one for each round, if they are valid; None if none are."""
    if sample_weight is None:
        return None
    if np.iscomplexobj(sample_weight):
        raise InputError("sample weights must be real numbers, but are complex")
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample weights must be numbers: {error}") from None
    if weights.shape != (rounds,):
        raise InputError(
            f"expected a sample weight for each of {rounds} rounds, but got the shape "
            f"{weights.shape}"
        )
    good = (weights == 0.0) | ((weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT))
    if not good.all():
        bad = int(np.argmin(good))
        raise InputError(
            f"sample weights must be 0, or lie between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}, but "
            f"that of row {bad} is {weights[bad]:g}"
        )
    return weights


def multiplied(weights: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return products of sample weights, cut to the range in which they may lie."""
    made = weights * others
    return np.where(made == 0.0, 0.0, np.clip(made, LEAST_WEIGHT, MOST_WEIGHT))
