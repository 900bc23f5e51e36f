"""Maps whose rows are written by one kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import numpy as np

from driftline.errors import InputError
from driftline.features.base import Map, Mapped, Mapper
from driftline.inputs.dense import DenseRows
from driftline.inputs.flags import learned, none
from driftline.inputs.rows import Rows, refuse
from driftline.inputs.sparse import SparseRows
from driftline.kernels import Kernel, zeros
from driftline.typing import Json, Saved

__all__ = ["BothMapper", "CompiledMap", "CompiledMapper", "check_number", "check_whole"]

#: Columns and starts of sparse mapped rows are numbers of 32 bits.
LARGEST_INDEX = 2**31 - 1


class CompiledMap(Map):
    """Base of maps of dense rows with a kernel and a state of numbers.

    A map that is ``sparse`` writes the same number of entries in every row, in increasing columns.
    """

    kernel: ClassVar[Kernel]

    dense_only = True

    #: Cells of this size or larger are refused.
    largest_cell: ClassVar[float] = np.inf

    def mapper(self) -> CompiledMapper:
        """Return a mapper that has seen no rows."""
        return CompiledMapper(self)

    @abstractmethod
    def width(self, features: int) -> int:
        """Return how many features mapped rows have."""

    def bears(self, features: int) -> float:
        """Return the size from which cells are refused."""
        return self.largest_cell

    def check_features(self, features: int) -> None:
        """Refuse rows with more or fewer features than the map is for."""
        if self.width(features) > LARGEST_INDEX:
            raise InputError(f"{self!r} would make {self.width(features)} features of {features}")

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
        """Refuse a state that no rows can lead to; its size and finiteness are checked already."""
        return

    def grow(self, state: np.ndarray, old: int, new: int) -> np.ndarray:
        """Return the state for more features, which were 0 in all rows so far."""
        return state.copy()

    @abstractmethod
    def places(self, old: int, new: int) -> np.ndarray:
        """Return the old index of each output after growing, -1 if it is new."""


class _Buffer:
    """Room for mapped rows, and for the kernel itself."""

    def __init__(self, part: CompiledMap, features: int, count: int):
        width = part.entries(features)
        self.values, self.room = np.empty((count, width)), np.empty(part.room(features))
        self.columns = np.empty((count, width if part.sparse else 0), dtype=np.int32)


class CompiledMapper(Mapper):
    """A compiled map with its state."""

    def __init__(self, part: CompiledMap):
        self.part = part
        self.state = np.zeros(0)
        self._constants: tuple[int, np.ndarray] | None = None
        self._buffer: _Buffer | None = None

    @property
    def outputs(self) -> int:
        """How many features mapped rows have."""
        assert self.features is not None
        return self.part.width(self.features)

    def piece(self, rows: Rows, start: int, stop: int) -> Mapped:
        """Map rows ``start`` to ``stop``, and learn from them; if one is refused, from none."""
        inputs, state = self._begun(rows, start, stop)
        if len(inputs) > 1 and self.features is not None:
            state = state.copy()  # a single row is refused before anything is written
        if self._buffer is None or self.features is None or len(self._buffer.values) < len(inputs):
            self._buffer = _Buffer(self.part, rows.features, len(inputs))
        made = self._mapped(inputs, state, self._buffer, learned(rows, start, stop))
        if isinstance(made, int):
            self._refuse(rows, start + made)
        self.features, self.state = rows.features, state
        return made

    def look_at(self, rows: Rows, start: int = 0, stop: int | None = None) -> Mapped:
        """Map each of rows ``start`` to ``stop`` as if it came next, without learning."""
        inputs, state = self._begun(rows, start, rows.rounds if stop is None else stop)
        buffer = _Buffer(self.part, rows.features, len(inputs))
        made = self._mapped(inputs, state, buffer, none(len(inputs)))
        if isinstance(made, int):
            self._refuse(rows, start + made)
        return made

    def remember(self, rows: Rows) -> None:
        """Learn from rows that were mapped before, if the map has a state."""
        if self.features is None or self.state.size or rows.rounds > 1:
            self.piece(rows, 0, rows.rounds)

    def _begun(self, rows: Rows, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows as the kernel takes them, and the state; refuse rows of another shape."""
        self.meet(rows)
        if not isinstance(rows, DenseRows):
            raise InputError(f"{self.part!r} is for dense rows: give an array, as by .toarray()")
        (inputs,) = rows.arrays(start, stop)
        if self.features is not None:
            return inputs, self.state
        self.part.check_features(rows.features)
        return inputs, zeros(self.part.size(rows.features))

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

    def to_saved(self) -> Saved:
        """Return what was learned as plain data and arrays."""
        outputs = None if self.features is None else self.outputs
        return {"features": self.features, "outputs": outputs}, {"state": self.state.copy()}

    def resume(self, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a state, if it is valid for this map."""
        features, state = about["features"], arrays["state"]
        if not isinstance(state, np.ndarray) or state.dtype != np.float64:
            raise InputError(f"the state of a map is a vector of numbers, not {state!r:.80}")
        if features is None:
            if state.shape != (0,):
                raise InputError("a map that has seen no rows must have an empty state")
        elif type(features) is not int or not 1 <= features <= 10**8:
            raise InputError(f"a map has 1 feature or more, not {features!r:.80}")
        else:
            self._check(features, state)
        outputs = None if features is None else self.part.width(features)
        if about["outputs"] != outputs:
            raise InputError(f"{features} features become {outputs}, not {about['outputs']!r:.80}")
        self.features, self.state, self._buffer = features, state.copy(), None

    def _check(self, features: int, state: np.ndarray) -> None:
        """Refuse a state that no rows with this many features can lead to."""
        self.part.check_features(features)
        expected = self.part.size(features)
        if state.shape != (expected,) or not np.isfinite(state).all():
            raise InputError(
                f"the state of {self.part!r} for {features} features must be {expected} finite "
                f"numbers, but has shape {state.shape}"
            )
        self.part.check(state, features)

    def grown(self, features: int) -> tuple[Mapper, np.ndarray]:
        """Return one for rows with more features, and where its outputs were before."""
        other = type(self)(self.part)
        if self.features is None:
            return other, np.zeros(0, dtype=np.int64)
        self.part.check_features(features)
        other.features = features
        other.state = self.part.grow(self.state, self.features, features)
        return other, self.part.places(self.features, features)


class BothMapper(CompiledMapper):
    """Base of compiled maps that also take sparse rows, which they map themselves."""

    #: Whether rows are sparse, None before the first.
    sparse: bool | None = None

    def meet(self, rows: Rows) -> None:
        """Refuse rows of another kind or length than those before."""
        super().meet(rows)
        if self.sparse is not None and self.sparse != rows.transposed:
            kinds = ("dense", "sparse")
            raise InputError(f"inputs were {kinds[self.sparse]}, but now they are not")

    def to_saved(self) -> Saved:
        """Return the number of features, and whether rows are sparse."""
        about, arrays = super().to_saved()
        return about | {"sparse": self.sparse}, arrays

    def resume(self, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from what :meth:`to_saved` returned."""
        features, sparse = about["features"], about["sparse"]
        if sparse not in ((None,) if features is None else (False, True)):
            raise InputError(f"expected features and whether rows are sparse, not {about!r:.80}")
        super().resume(about, arrays)
        self.sparse = sparse

    def grown(self, features: int) -> tuple[Mapper, np.ndarray]:
        """Return a mapper for more features, which come after the old."""
        other, places = super().grown(features)
        assert isinstance(other, BothMapper)
        other.sparse = self.sparse
        return other, places


def check_whole(what: str, number: object, least: int, most: int) -> None:
    """Refuse a value that is not a whole number in a range."""
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InputError(f"{what} is a whole number from {least} to {most}, not {number!r:.80}")


def check_number(what: str, number: Any, least: float, most: float) -> None:
    """Refuse a value that is not a number in a range."""
    good = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not good or not least <= number <= most:
        raise InputError(f"{what} is a number from {least:g} to {most:g}, not {number!r:.80}")
