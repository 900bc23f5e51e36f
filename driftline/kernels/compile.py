"""Compile a function for one signature on first use, and keep it on disk."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from driftline.kernels.backend import (
    COMPILES,
    Compiler,
    FunctionCache,
    Library,
    ResultCache,
    Signature,
    njit,
)
from driftline.kernels.cache import Entry, Locator, cache_directory

if TYPE_CHECKING:
    from numba.core.compiler_machinery import PassManager

__all__ = ["Kernel", "helper", "kernel", "kernel_at", "routine", "variants"]

Function = TypeVar("Function", bound=Callable[..., object])

#: Kernels work in buffers of the caller and allocate nothing, so they need no reference counting,
#: which would cost time in every round. A division by zero gives an infinity, not an exception.
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}


class DistinctArguments(Compiler):
    """A compiler that may assume that no two arguments share memory.

    Without it every inner loop would first compare the addresses of its arrays.
    """

    def define_pipelines(self) -> list[PassManager]:
        """Set the flag before anything is compiled."""
        self.state.flags.noalias = True
        return super().define_pipelines()


#: The address that stands for a function without machine code. Called from Python, it makes
#: ``PyObject_Call`` call Numba's record of the function, which raises a TypeError.
REFUSES = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value or 0


class Linked(Library):
    """A library of functions that are linked into kernels, and not compiled on their own."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the kernel is optimised, with this function in it."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return an address that raises a TypeError when called from Python."""
        self._ensure_finalized()
        return REFUSES

    @property
    def codegen(self) -> Linked:
        """Itself: code that does not run alone needs no code generator."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Do nothing: code that does not run alone has no environment."""


class Pieces(Compiler):
    """A compiler of functions that only kernels call, into which they are inlined.

    They are optimised only as parts of the kernel. By default Numba would also optimise each of
    them alone, and make machine code that nobody calls: more than half of the time to compile a
    kernel.
    """

    def define_pipelines(self) -> list[PassManager]:
        """Put the function into a :class:`Linked` library, which does not compile it alone."""
        state = self.state
        state.library = Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class DistinctPieces(Pieces, DistinctArguments):
    """The same for functions whose arguments share no memory."""


#: Options of functions that are inlined: they are not called from Python, and need no wrapper.
INLINED: dict[str, Any] = {
    **OPTIONS,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": Pieces,
}


def helper(function: Function) -> Function:
    """Mark a function as a piece of kernels: compiled into each kernel that calls it."""
    return njit(**INLINED)(function)


def routine(function: Function) -> Function:
    """Mark a long function as a piece of kernels that they call, and that is not inlined.

    One that is called in several places is then compiled once, and the compiler, whose time grows
    faster than the length of a function, sees several short ones.
    """
    return njit(**INLINED | {"forceinline": False})(function)


class Result(ResultCache):
    """How a compiled function is written and read; it is kept where the locator says."""

    _locator_classes: list[type[object]] = [Locator]


class Cache(FunctionCache):
    """The files of a kernel."""

    _impl_class = Result


class Kernel:
    """A function compiled for one fixed signature when it is first needed.

    Its array arguments must not overlap, unless it only reads them.
    Parts refer to kernels by :attr:`address`, so that one compiled loop serves every
    combination of parts; called from Python, a kernel is an ordinary function.
    """

    def __init__(self, function: Callable[..., object], signature: Signature):
        self.function = function
        self.signature = signature
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: object) -> Any:
        """Call the compiled function."""
        return self.compiled(*arguments)

    def __repr__(self) -> str:
        """Name the function and where it comes from."""
        return f"<kernel {self.function.__module__}.{self.function.__qualname__}>"

    def _interpreted(self, *arguments: object) -> Any:
        with np.errstate(all="ignore"):  # an overflow gives an infinity, as in compiled code
            return self.function(*arguments)

    @functools.cached_property
    def compiled(self) -> Any:
        """The compiled function, from the cache if it is there; without Numba, the plain one."""
        if not COMPILES:
            return self._interpreted
        source = Path(self.function.__code__.co_filename)
        directory = cache_directory(source) if source.is_file() else None
        if directory is None:  # or typed at a prompt: no file to cache it for
            return self._made(cached=False)
        entry = Entry(directory, self.function)
        with entry.alone():
            entry.verify()
            try:
                made = self._made(cached=True)
            except Exception:  # Numba raises anything on a file that it cannot read
                entry.delete()
                made = self._made(cached=True)
            entry.seal()
        return made

    def _made(self, cached: bool) -> Any:
        """Return the compiled function: from the cache if it is there, or for the cache."""
        made: Any = njit(pipeline_class=DistinctArguments, **OPTIONS)(self.function)
        if cached:
            made._cache = Cache(self.function)
        made.compile(self.signature)
        made.disable_compile()
        return made

    @functools.cached_property
    def address(self) -> int:
        """Where the machine code begins, for calls from other kernels; without Numba, a number."""
        if not COMPILES:
            _PLAIN.append(self)
            return len(_PLAIN)
        compiled = self.compiled.overloads[self.signature.args]
        return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


#: Kernels that were asked for their address where nothing is compiled; the first has address 1.
_PLAIN: list[Kernel] = []


def kernel_at(address: int) -> Kernel:
    """Return the kernel of an address, where nothing is compiled."""
    return _PLAIN[address - 1]


def kernel(signature: Signature) -> Callable[[Callable[..., object]], Kernel]:
    """Make a :class:`Kernel` of a function, as a decorator."""
    return lambda function: Kernel(function, signature)


def variants(
    signatures: Mapping[Any, Signature],
) -> Callable[[Callable[..., object]], dict[Any, Kernel]]:
    """Make a :class:`Kernel` of a function for each of several signatures, by their keys."""
    return lambda function: {name: Kernel(function, own) for name, own in signatures.items()}
