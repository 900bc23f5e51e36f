"""Which rows are learned from, as flags for kernels of maps."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["every", "learned", "none"]

#: Flags for the largest number of rows so far; nobody writes to them.
_SET, _CLEAR = np.ones(1 << 14, dtype=np.bool_), np.zeros(1 << 14, dtype=np.bool_)


def every(count: int) -> np.ndarray:
    """Return flags of rows that are all learned from."""
    return _SET[:count] if count <= len(_SET) else np.ones(count, dtype=np.bool_)


def none(count: int) -> np.ndarray:
    """Return flags of rows of which none is learned from."""
    return _CLEAR[:count] if count <= len(_CLEAR) else np.zeros(count, dtype=np.bool_)


def learned(rows: Any, start: int, stop: int) -> np.ndarray:
    """Return flags of rows ``start`` to ``stop``: which of them are learned from."""
    asked = rows.asked
    return every(stop - start) if asked is None else ~asked[start:stop]
