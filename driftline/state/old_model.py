"""Read learners of version 0.1.0, whose state was one vector and whose draws came from PCG64."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np

from driftline.errors import InputError
from driftline.state.draws import KEYS
from driftline.state.state import State
from driftline.typing import Json

__all__ = ["old_key", "old_state"]

#: The layout of the vector: fields of the state, in this order; RADIUS was that of the domain, and
#: ALARM is 2 after a restart.
SCALE, NORM_SQ, REFRESH, ROUNDS, LARGEST_INPUT_SQ, ETA, RADIUS, INNER, ALARM, MEMORY = range(10)


def old_key(generator: Json) -> int:
    """Return a key for draws from now on, since the old generator is no longer used.

    Equal files get equal keys.
    """
    text = json.dumps(generator, sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()) % KEYS


def old_state(about: Json, arrays: Mapping[str, np.ndarray], first: State) -> State:
    """Return the state in an old file, without its draws; ``first`` is that of a new learner."""
    vector, memory = arrays["state"], first.rate_memory
    assert memory is not None
    expected = MEMORY + memory.size + first.detector_memory.size
    if vector.shape != (expected,) or vector.dtype != np.float64 or np.isnan(vector).any():
        raise InputError(f"expected a state of {expected} numbers, but got {vector.shape}")
    counts = vector[[REFRESH, ROUNDS]]
    if not np.isfinite(vector[:MEMORY][[0, 1, 4, 5]]).all() or not (counts < 2**53).all():
        raise InputError(f"the state has impossible values: {vector[:MEMORY]}")
    fields = {
        "rounds": int(vector[ROUNDS]),
        "tickets": int(vector[ROUNDS]),
        "features": about["features"],
        "transposed": about["transposed"],
        "scale": float(vector[SCALE]),
        "norm_sq": float(vector[NORM_SQ]),
        "refresh": int(vector[REFRESH]),
        "largest_input_sq": float(vector[LARGEST_INPUT_SQ]),
        "eta": float(vector[ETA]),
        "restarted": bool(vector[ALARM] == 2.0),
    }
    own = {
        "rate_memory": vector[MEMORY : MEMORY + memory.size].copy(),
        "detector_memory": vector[MEMORY + memory.size :].copy(),
    }
    weights = {"weights": arrays["weights"]} if "weights" in arrays else {}
    return State.from_saved({"version": 1, **fields}, own | weights)
