"""Compile a function for one signature on first use, and keep it on disk.

Numba notices when the file of a cached function changes, but not when a helper in
another file does. So the cache lives in a directory named after a digest of every
file that holds compiled code: change one, and all is compiled afresh.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.compiler import Compiler

__all__ = ["Kernel", "cache_directory", "helper", "kernel"]

PACKAGE = Path(__file__).parents[1]


#: Kernels work in buffers that belong to the caller, so they need no memory of their own,
#: nor the counting of references that would go with it in every round; a division by zero
#: is the infinity it is, not an exception.
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}


class DistinctArguments(Compiler):
    """A compiler that may assume that no two arguments share memory.

    Without it every inner loop would first compare the addresses of its arrays.
    """

    def define_pipelines(self) -> Any:
        """Set the flag before anything is compiled."""
        self.state.flags.noalias = True
        return super().define_pipelines()


def helper(function: Callable[..., Any]) -> Any:
    """Mark a function as a piece of kernels: compiled into each kernel that calls it."""
    return numba.njit(forceinline=True, **OPTIONS)(function)


class Kernel:
    """A function compiled for one fixed signature when it is first needed.

    Its array arguments must not overlap, unless it only reads them.
    Parts refer to kernels by :attr:`address`, so that one compiled loop serves every
    combination of parts; called from Python, a kernel is an ordinary function.
    """

    def __init__(self, function: Callable[..., Any], signature: Any):
        self.function = function
        self.signature = signature
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.compiled(*arguments)

    def __repr__(self) -> str:
        """Name the function and where it comes from."""
        return f"<kernel {self.function.__module__}.{self.function.__qualname__}>"

    @functools.cached_property
    def compiled(self) -> Any:
        """The compiled function, from the cache if it is there."""
        compile_it = functools.partial(
            numba.njit, self.signature, pipeline_class=DistinctArguments, **OPTIONS
        )
        directory = cache_directory()
        if directory is None:
            return compile_it()(self.function)
        settings: Any = numba.config
        before = settings.CACHE_DIR
        settings.CACHE_DIR = str(directory)
        try:
            return compile_it(cache=True)(self.function)
        finally:
            settings.CACHE_DIR = before

    @functools.cached_property
    def address(self) -> int:
        """Where the machine code begins, for calls from other kernels."""
        compiled = self.compiled.overloads[self.signature.args]
        return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a :class:`Kernel` of a function, as a decorator."""
    return lambda function: Kernel(function, signature)


@functools.cache
def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, or None where none can be written.

    It lies in ``DRIFTLINE_CACHE`` if that is set, else in the user's cache directory.
    """
    directory = _cache_root() / _sources_digest()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return None
    return directory


def _cache_root() -> Path:
    if chosen := os.environ.get("DRIFTLINE_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/driftline").expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "driftline"


def _sources_digest() -> str:
    """Digest of all files that may hold compiled code: those that import this package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if path.parent.name == "kernels" or b"driftline.kernels" in source:
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + source)
    return digest.hexdigest()[:16]
