"""Maps whose rows are written by one kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features.base import Map, Mapped, Mapper, Saved
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import refuse
from driftline.inputs.sparse import SparseRows
from driftline.kernels import Kernel, zeros

__all__ = ["CompiledMap", "CompiledMapper"]


class CompiledMap(Map):
    """Base of maps of dense rows with a kernel and a state of numbers."""

    kernel: ClassVar[Kernel]

    #: Whether mapped rows are sparse, with equally many entries each.
    sparse: ClassVar[bool] = False

    def mapper(self) -> CompiledMapper:
        """Return one that has seen nothing."""
        return CompiledMapper(self)

    @abstractmethod
    def width(self, features: int) -> int:
        """Return how many features mapped rows have."""

    def entries(self, features: int) -> int:
        """Return how many entries a sparse mapped row has."""
        return self.width(features)

    def constants(self, features: int) -> np.ndarray:
        """Return numbers that follow from the part and the number of features."""
        return np.zeros(0)

    def size(self, features: int) -> int:
        """Return how many numbers the state has, all 0 before the first row."""
        return 0

    def room(self, features: int) -> int:
        """Return how many numbers of scratch space the kernel needs."""
        return 0

    def check(self, state: np.ndarray, features: int) -> None:
        """Refuse a state, of the right size and finite, that no rows can lead to."""
        return

    def grow(self, state: np.ndarray, old: int, new: int) -> np.ndarray:
        """Return the state for more features, which were 0 in all rows so far."""
        return state.copy()

    @abstractmethod
    def places(self, old: int, new: int) -> np.ndarray:
        """Return where each output for more features was before, -1 if it was not there."""


class _Buffer:
    """Room for mapped rows, and for the kernel itself."""

    def __init__(self, part: CompiledMap, features: int, count: int):
        width = part.entries(features) if part.sparse else part.width(features)
        self.values, self.room = np.empty((count, width)), np.empty(part.room(features))
        self.columns = np.empty((count, width if part.sparse else 0), dtype=np.int32)


class CompiledMapper(Mapper):
    """A compiled map with its state."""

    def __init__(self, part: CompiledMap):
        self.part = part
        self.state = np.zeros(0)
        self._constants = np.zeros(0)
        self._buffer: _Buffer | None = None

    @property
    def outputs(self) -> int:
        """How many features mapped rows have."""
        assert self.features is not None
        return self.part.width(self.features)

    def piece(self, rows: Any, start: int, stop: int) -> Mapped:
        """Map rows ``start`` to ``stop``, and remember them; if one is refused, none."""
        self.meet(rows)
        (inputs,) = _dense(rows).arrays(start, stop)
        before = self.state.copy() if len(inputs) > 1 else self.state  # one row changes nothing
        if self._buffer is None or len(self._buffer.values) < len(inputs):
            self._buffer = _Buffer(self.part, rows.features, len(inputs))
        made = self._mapped(inputs, self._buffer, True)
        if isinstance(made, int):
            self.state[:] = before
            refuse(rows, start + made)
        return made

    def look_at(self, rows: Any) -> Mapped:
        """Map every row as if it came next, and remember nothing: for any number of threads."""
        mapper = self if self.features is not None else CompiledMapper(self.part)
        mapper.meet(rows)
        (inputs,) = _dense(rows).arrays(0, rows.rounds)
        made = mapper._mapped(inputs, _Buffer(self.part, rows.features, rows.rounds), False)
        if isinstance(made, int):
            refuse(rows, made)
        return made

    def remember(self, rows: Any) -> None:
        """Learn from rows that were looked at before, if there is anything to learn."""
        self.meet(rows)
        if self.state.size:
            self.piece(rows, 0, rows.rounds)

    def _mapped(self, inputs: np.ndarray, buffer: _Buffer, learning: bool) -> Mapped | int:
        """Return mapped rows; or the first that is refused."""
        part, (count, features) = self.part, inputs.shape
        rest = (inputs, self._constants, self.state, buffer.room, learning)
        out, columns = buffer.values[:count], buffer.columns[:count]
        if not part.sparse:
            good = part.kernel(*rest, out)
            return DenseRows(out) if good == count else int(good)
        good = part.kernel(*rest, out, columns)
        if good < count:
            return int(good)
        from scipy.sparse import csr_array

        starts = np.arange(count + 1, dtype=np.int32) * out.shape[1]
        wide = part.width(features)
        return SparseRows.made(out.ravel(), columns.ravel(), starts, wide, csr_array)

    def meet(self, rows: Any) -> None:
        """Begin with the first rows, and refuse others that are not like them."""
        super().meet(rows)
        _dense(rows)
        if self.features is None:
            self._begin(rows.features, zeros(self.part.size(rows.features)))

    def _begin(self, features: int, state: np.ndarray) -> None:
        self.features, self.state = features, state
        self._constants, self._buffer = self.part.constants(features), None

    def to_saved(self) -> Saved:
        """Return what was learned as plain data and arrays."""
        return {"features": self.features}, {"state": self.state.copy()}

    def restore(self, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from what :meth:`to_saved` has returned, if it can be a state of this map."""
        features, state = about["features"], arrays["state"]
        if features is None:
            if state.size:
                raise InputError("a map that has seen nothing remembers nothing")
            self.features, self.state = None, np.zeros(0)
            return
        if type(features) is not int or not 1 <= features <= 10**8:
            raise InputError(f"a map has 1 feature or more, not {features!r}")
        expected = self.part.size(features)
        if state.shape != (expected,) or state.dtype != np.float64 or not np.isfinite(state).all():
            raise InputError(
                f"the state of {self.part!r} for {features} features must be {expected} finite "
                f"numbers, but has shape {state.shape}"
            )
        self.part.check(state, features)
        self._begin(features, np.array(state))

    def grown(self, features: int) -> tuple[Mapper, np.ndarray]:
        """Return one for rows with more features, and where its outputs were before."""
        other = CompiledMapper(self.part)
        if self.features is None:
            return other, np.zeros(0, dtype=np.int64)
        other._begin(features, self.part.grow(self.state, self.features, features))
        return other, self.part.places(self.features, features)


def _dense(rows: Any) -> DenseRows:
    if not isinstance(rows, DenseRows):
        raise InputError("this map is for dense rows: give an array, as by .toarray()")
    return rows
