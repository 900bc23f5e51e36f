"""Maps whose rows are written by one kernel."""

from __future__ import annotations

from typing import ClassVar, NoReturn

import numpy as np

from driftline.errors import InputError
from driftline.features.base import Map, Mapped, Mapper
from driftline.inputs.dense import DenseRows
from driftline.inputs.flags import none
from driftline.inputs.rows import Rows, refuse
from driftline.inputs.sparse import SparseRows
from driftline.kernels import Kernel

__all__ = ["CompiledMap", "CompiledMapper"]

#: Columns and starts of sparse mapped rows are numbers of 32 bits.
LARGEST_INDEX = 2**31 - 1


class CompiledMap(Map):
    """Base of maps of dense rows with a kernel and a state of numbers.

    A map that is ``sparse`` writes the same number of entries in every row, in increasing columns.
    """

    kernel: ClassVar[Kernel]

    dense_only = True

    largest_cell: ClassVar[float] = np.inf

    def mapper(self) -> CompiledMapper:
        """Return a mapper that has seen no rows."""
        return CompiledMapper(self)

    def check_features(self, features: int) -> None:
        """Refuse rows that would become too wide for indices of 32 bits."""
        if self.width(features) > LARGEST_INDEX:
            raise InputError(f"{self!r} would make {self.width(features)} features of {features}")

    def constants(self, features: int) -> np.ndarray:
        """Return numbers that follow from the part and the number of features."""
        return np.zeros(0)

    def room(self, features: int) -> int:
        """Return how many numbers of scratch space the kernel needs."""
        return 0


class _Buffer:
    """Room for mapped rows, and for the kernel itself."""

    def __init__(self, part: CompiledMap, features: int, count: int):
        width = part.entries(features)
        self.values, self.room = np.empty((count, width)), np.empty(part.room(features))
        self.columns = np.empty((count, width if part.sparse else 0), dtype=np.int32)


class CompiledMapper(Mapper):
    """A compiled map with its state."""

    part: CompiledMap
    _constants: tuple[int, np.ndarray] | None = None

    def _clear(self) -> None:
        self._buffer: _Buffer | None = None

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return mapped rows, and the state after them; see :meth:`Mapper.mapped`."""
        if not isinstance(rows, DenseRows):
            raise InputError(f"{self.part!r} is for dense rows: give an array, as by .toarray()")
        (inputs,) = rows.arrays(start, stop)
        state = self.begun(rows)
        buffer = None if learning is None or self.features is None else self._buffer
        if buffer is None or len(buffer.values) < len(inputs):
            buffer = _Buffer(self.part, rows.features, len(inputs))
        if learning is None:
            learning = none(len(inputs))
        else:
            self._buffer = buffer
            if len(inputs) > 1 and self.features is not None:
                state = state.copy()  # a single row is refused before anything is written
        made = self._mapped(inputs, state, buffer, learning)
        if isinstance(made, int):
            self._refuse(rows, start + made)
        return made, state

    def remember(self, rows: Rows) -> None:
        """Learn from rows that were mapped before, if the map has a state."""
        if self.features is None or self.state.size or rows.rounds > 1:
            self.piece(rows, 0, rows.rounds)

    def _mapped(
        self, inputs: np.ndarray, state: np.ndarray, buffer: _Buffer, learning: np.ndarray
    ) -> Mapped | int:
        """Return mapped rows, or the number of the first row that is refused."""
        part, (count, features) = self.part, inputs.shape
        if self._constants is None or self._constants[0] != features:
            self._constants = features, part.constants(features)
        rest = (inputs, self._constants[1], state, buffer.room, learning)
        out, columns = buffer.values[:count], buffer.columns[:count]
        if not part.sparse:
            good = part.kernel(*rest, out)
            return DenseRows(out) if good == count else int(good)
        if out.size > LARGEST_INDEX:
            raise InputError(f"{count} rows of {out.shape[1]} entries are too many at once")
        good = part.kernel(*rest, out, columns)
        if good < count:
            return int(good)
        from scipy.sparse import csr_array

        starts = np.arange(count + 1, dtype=np.int32) * np.int32(out.shape[1])
        wide = part.width(features)
        return SparseRows.made(out.ravel(), columns.ravel(), starts, wide, csr_array)

    def _refuse(self, rows: Rows, t: int) -> NoReturn:
        """Raise for a row that the kernel has not mapped."""
        vector = rows.row(t)
        place = int(np.argmax(np.abs(vector)))
        if np.isfinite(vector).all():
            where = f"row {t}" if rows.rounds > 1 else "the input"
            raise InputError(
                f"{where} has {vector[place]:g} as feature {place}: {self.part!r} is for cells "
                f"below {self.part.largest_cell:g} in size"
            )
        refuse(rows, t)
