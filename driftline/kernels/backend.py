"""Numba and LLVM where they are installed, and stand-ins where they are not.

Without Numba kernels are the plain functions that they are written as, and whoever calls one by its
address finds it in a list. The compiled loops are of no use then: :data:`COMPILES` says so, and
engines play round by round in Python. Descriptions of types, which only a compiler reads, are all
the same nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from driftline.errors import InputError

__all__ = [
    "COMPILES",
    "MISSING",
    "Compiler",
    "Library",
    "Signature",
    "cgutils",
    "config",
    "datamodel",
    "hint",
    "intrinsic",
    "ir",
    "njit",
    "types",
]


class Nothing:
    """What stands for types and words of a compiler that is not there."""

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **options: object) -> Nothing:
        return self


def _plain_njit(function: object = None, **options: object) -> object:
    """Return a function as it is."""
    return function if callable(function) else lambda given: given


def _plain_intrinsic(function: Callable[..., object]) -> Callable[..., None]:
    """Return what refuses to be called: only a compiler can make anything of it."""

    def refuse(*arguments: object) -> None:
        raise InputError(f"{function.__name__} is compiled code, and there is no Numba: {MISSING}")

    return refuse


#: Why Numba cannot be used, empty if it can.
MISSING: str = ""

if TYPE_CHECKING:
    from llvmlite import ir
    from numba import config, njit, types
    from numba.core import cgutils, datamodel
    from numba.core.codegen import JITCodeLibrary as Library
    from numba.core.compiler import Compiler
    from numba.core.typing import Signature
    from numba.extending import intrinsic
else:
    try:
        from llvmlite import ir
        from numba import config, njit, types
        from numba.core import cgutils, datamodel
        from numba.core.codegen import JITCodeLibrary as Library
        from numba.core.compiler import Compiler
        from numba.core.typing import Signature
        from numba.extending import intrinsic
    except ImportError as error:
        MISSING = str(error)
        ir = config = types = cgutils = datamodel = Signature = Nothing()
        Compiler = Library = object
        njit, intrinsic = _plain_njit, _plain_intrinsic

#: Whether kernels are compiled.
COMPILES = not MISSING


def hint(function: Callable[..., object]) -> Callable[..., None]:
    """Make an intrinsic of a function that changes nothing, and is left out without a compiler."""
    return intrinsic(function) if COMPILES else lambda *arguments: None
