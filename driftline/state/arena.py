r"""What is learned, as one buffer: every field is declared once, and all else follows.

With :math:`n_a` the size of axis a, field i with axes :math:`A_i` has :math:`\prod_{a \in A_i} n_a`
words of 8 bytes, and begins where the fields before it end,

.. math:: b_i = \sum_{j < i} \prod_{a \in A_j} n_a .

A copy is one copy of memory. A file has the sizes of the axes and the buffer, and each number is
checked before anything changes. A field grows by the names of its axes: where entry i of an axis
was entry :math:`p_i` before, or is new (:math:`p_i = -1`), a new field is the old one taken at p,
with the field's ``added`` at new entries. Kernels are given the buffer, or views of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = [
    "LARGEST",
    "LINE",
    "MOST_ROWS",
    "Field",
    "Layout",
    "grown_places",
    "inside",
    "within",
    "zeros",
]

#: The largest finite number, and the largest number of rows that is counted exactly.
LARGEST, MOST_ROWS = float(np.finfo(np.float64).max), 2.0**53

#: The bytes of a cache line, at which buffers begin.
LINE = 64


@dataclass(frozen=True)
class Field:
    """Numbers that are learned: their name, their axes, what they begin with and may be.

    An axis is a name or a size; without axes a field is one number. ``fill`` is what a new state
    has, ``added`` what new entries have when an axis grows (default: ``fill``).
    """

    name: str
    axes: tuple[str | int, ...] = ()
    fill: float = 0.0
    added: float | None = None
    least: float = -LARGEST
    most: float = LARGEST
    whole: bool = False

    @property
    def bounded(self) -> bool:
        """Whether some finite numbers are refused."""
        return self.whole or self.least > -LARGEST or self.most < LARGEST

    def check(self, numbers: np.ndarray) -> None:
        """Refuse numbers out of range, infinite, or not whole where they must be."""
        good = (numbers >= self.least) & (numbers <= self.most)
        if self.whole:
            good &= numbers == np.rint(numbers)
        if not good.all():
            kind = "whole numbers" if self.whole else "numbers"
            bad = numbers[np.unravel_index(np.argmin(good), good.shape)]
            most = "" if self.most == LARGEST else f" to {self.most:g}"
            span = "" if self.least == -LARGEST else f" from {self.least:g}{most}"
            raise InputError(
                f"the state has {bad:g} among {self.name!r}: expected finite {kind}{span}"
            )


class Layout:
    """Where each field lies in a buffer, for some sizes of the axes.

    >>> fields = Field("n", least=0, whole=True), Field("means", ("features",), added=0.5)
    >>> layout = Layout(fields, features=2)
    >>> buffer = layout.new()
    >>> layout.views(buffer).means[:] = 3.0, 4.0
    >>> buffer
    array([0., 3., 4.])
    >>> layout.grown(buffer, features=np.array([0, 1, -1]))
    array([0. , 3. , 4. , 0.5])
    >>> layout.check(np.array([0.25, 3.0, 4.0]))
    Traceback (most recent call last):
        ...
    driftline.errors.InputError: the state has 0.25 among 'n': expected finite whole numbers from 0
    """

    def __init__(self, fields: tuple[Field, ...], **sizes: int):
        self.fields, self.sizes = fields, sizes
        self._shapes = [tuple(_size(axis, sizes) for axis in field.axes) for field in fields]
        self._ends = [0, *itertools.accumulate(math.prod(shape) for shape in self._shapes)]

    @property
    def size(self) -> int:
        """How many words of 8 bytes the buffer has."""
        return self._ends[-1]

    def new(self) -> np.ndarray:
        """Return the buffer of a new state; raise an InputError if there is no memory for it."""
        made = buffer_of(self.size)
        for field, numbers in self._pairs(made):
            if field.fill:
                numbers[...] = field.fill
        return made

    def views(self, buffer: np.ndarray) -> Any:
        """Return views of the fields, by name."""
        return SimpleNamespace(**{field.name: own for field, own in self._pairs(buffer)})

    def check(self, buffer: object) -> Any:
        """Return views of the fields of a buffer from elsewhere, if each of them is valid."""
        if not isinstance(buffer, np.ndarray) or buffer.dtype != np.float64:
            raise InputError(f"the state is a vector of numbers, not {buffer!r:.80}")
        if buffer.shape != (self.size,):
            sizes = " and ".join(f"{size} {axis}" for axis, size in self.sizes.items())
            raise InputError(
                f"the state {f'for {sizes}' if sizes else 'before the first row'} must be "
                f"{self.size} finite numbers, but has shape {buffer.shape}"
            )
        pairs, finite = self._pairs(buffer), bool(np.isfinite(buffer).all())
        for field, numbers in pairs:
            if field.bounded or not finite:
                field.check(numbers)
        return SimpleNamespace(**{field.name: own for field, own in pairs})

    def grown(self, buffer: np.ndarray, **places: np.ndarray) -> np.ndarray:
        """Return the buffer for longer axes; ``places`` has each entry's old index, -1 if new."""
        longer = self.resized(**{axis: len(place) for axis, place in places.items()})
        made = buffer_of(longer.size)
        pairs = zip(self._pairs(buffer), longer._pairs(made), strict=True)
        for (field, old), (_, new) in pairs:
            added = field.fill if field.added is None else field.added
            for axis, name in enumerate(field.axes):
                if isinstance(name, str) and name in places:
                    taken = places[name]
                    old = np.take(old, np.maximum(taken, 0), axis=axis)
                    old[(slice(None),) * axis + (taken < 0,)] = added
            new[...] = old
        return made

    def resized(self, **sizes: int) -> Layout:
        """Return the layout of the same fields for other sizes of some axes."""
        return Layout(self.fields, **{**self.sizes, **sizes})

    def _pairs(self, buffer: np.ndarray) -> list[tuple[Field, np.ndarray]]:
        """Return the fields, each with a view of its numbers."""
        made = []
        for field, shape, start, stop in zip(
            self.fields, self._shapes, self._ends[:-1], self._ends[1:], strict=True
        ):
            made.append((field, buffer[start:stop].reshape(shape)))
        return made


def buffer_of(size: int) -> np.ndarray:
    """Return zeros, which begin at a cache line."""
    room = zeros(8 * size + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + 8 * size].view(np.float64)


def zeros(count: int, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Return a vector of zeros; raise an InputError if there is not enough memory for it."""
    try:
        return np.zeros(count, dtype)
    except (MemoryError, ValueError) as error:
        needed = count * np.dtype(dtype).itemsize
        raise InputError(
            f"a learner for these inputs needs {needed / 2**30:,.0f} GiB of memory, which is not "
            "available: expected fewer features"
        ) from error


def grown_places(old: int, new: int, kept: int = 0) -> np.ndarray:
    """Return old indices of a longer axis: new entries come last, but before the last ``kept``.

    >>> grown_places(3, 5, kept=1)
    array([ 0,  1, -1, -1,  2])
    """
    first = old - kept
    return np.r_[np.arange(first), np.full(new - old, -1), np.arange(first, old)].astype(np.int64)


def within(name: object, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a part, by names that begin with that of the part."""
    return {f"{name}.{key}": array for key, array in arrays.items()}


def inside(name: object, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a part, from what :func:`within` returned and others."""
    start = f"{name}."
    return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}


def _size(axis: str | int, sizes: Mapping[str, int]) -> int:
    return sizes[axis] if isinstance(axis, str) else axis
