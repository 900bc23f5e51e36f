"""The choice of an engine for given parts."""

from __future__ import annotations

import functools
import warnings

from driftline.engines.base import Engine, Parts
from driftline.engines.compiled import CompiledEngine
from driftline.engines.plain import PlainEngine
from driftline.kernels import COMPILES, MISSING

__all__ = ["engine_for", "warn_without_numba"]


def engine_for(parts: Parts) -> type[Engine]:
    """Return the compiled engine, or the plain one for parts without kernels, or without Numba."""
    if not parts.have_kernels:
        return PlainEngine
    if not COMPILES:
        warn_without_numba()
        return PlainEngine
    return CompiledEngine


@functools.cache
def warn_without_numba() -> None:
    """Say once in a process that rounds are slow, if there is no Numba."""
    if COMPILES:
        return
    warnings.warn(
        f"Numba cannot be imported ({MISSING}): rounds are played in plain Python, with the same "
        "results but slowly. Install it by pip install numba.",
        RuntimeWarning,
        stacklevel=4,
    )
