"""Which engine plays for some parts."""

from __future__ import annotations

import functools
import warnings

from driftline.engines.base import Engine, Parts
from driftline.engines.compiled import CompiledEngine
from driftline.engines.plain import PlainEngine
from driftline.kernels import COMPILES, MISSING

__all__ = ["engine_for"]


def engine_for(parts: Parts) -> type[Engine]:
    """Return the compiled engine, or the plain one for parts without kernels, or without Numba."""
    if not parts.have_kernels:
        return PlainEngine
    if not COMPILES:
        _warn_once()
        return PlainEngine
    return CompiledEngine


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        f"Numba cannot be imported ({MISSING}): rounds are played in plain Python, with the same "
        "results but slowly. Install it by pip install numba.",
        RuntimeWarning,
        stacklevel=4,
    )
