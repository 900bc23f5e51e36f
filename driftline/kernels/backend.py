"""Numba and LLVM where they are installed, and stand-ins where they are not.

Without Numba a kernel is the plain Python function that it is written as, and its address is a
place in a list. The compiled loops are not used then: :data:`COMPILES` is False, and engines play
round by round in Python. Numba's types, which only a compiler reads, are replaced by one
placeholder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from driftline.errors import InputError

__all__ = [
    "COMPILES",
    "MISSING",
    "Compiler",
    "FunctionCache",
    "Library",
    "ResultCache",
    "Signature",
    "cgutils",
    "datamodel",
    "hint",
    "intrinsic",
    "ir",
    "lowering",
    "njit",
    "templates",
    "twin",
    "types",
]


class Placeholder:
    """A placeholder for Numba's types and functions where Numba is not installed."""

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **options: object) -> Placeholder:
        return self


def _plain_njit(function: object = None, **options: object) -> object:
    """Return the function unchanged."""
    return function if callable(function) else lambda given: given


def _plain_intrinsic(function: Callable[..., object]) -> Callable[..., None]:
    """Return a function that raises when called: an intrinsic needs a compiler."""

    def refuse(*arguments: object) -> None:
        raise InputError(f"{function.__name__} is compiled code, and there is no Numba: {MISSING}")

    return refuse


#: Why Numba cannot be used, empty if it can.
MISSING: str = ""

if TYPE_CHECKING:
    from llvmlite import ir
    from numba import njit, types
    from numba.core import cgutils, datamodel
    from numba.core import imputils as lowering
    from numba.core.caching import CompileResultCacheImpl as ResultCache
    from numba.core.caching import FunctionCache
    from numba.core.codegen import JITCodeLibrary as Library
    from numba.core.compiler import Compiler
    from numba.core.typing import Signature, templates
    from numba.extending import intrinsic
else:
    try:
        from llvmlite import ir
        from numba import njit, types
        from numba.core import cgutils, datamodel
        from numba.core import imputils as lowering
        from numba.core.caching import CompileResultCacheImpl as ResultCache
        from numba.core.caching import FunctionCache
        from numba.core.codegen import JITCodeLibrary as Library
        from numba.core.compiler import Compiler
        from numba.core.typing import Signature, templates
        from numba.extending import intrinsic
    except ImportError as error:
        MISSING = str(error)
        ir = types = cgutils = datamodel = Signature = Placeholder()
        lowering = templates = Placeholder()
        Compiler = Library = ResultCache = FunctionCache = object
        njit, intrinsic = _plain_njit, _plain_intrinsic

#: Whether kernels are compiled.
COMPILES = not MISSING


def hint(function: Callable[..., object]) -> Callable[..., None]:
    """Make an intrinsic that changes no result, such as a prefetch; without Numba, do nothing."""
    return intrinsic(function) if COMPILES else lambda *arguments: None


def twin(compiled: Any) -> Callable[[Callable[..., Any]], Any]:
    """Put an intrinsic in the place of a plain function, where kernels are compiled."""
    return lambda plain: compiled if COMPILES else plain
