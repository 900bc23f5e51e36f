"""Inputs of any scale, standardised as they come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.features import scaling as dense
from driftline.features import sparse_scaling as sparse
from driftline.features.base import Map, Mapped, Mapper
from driftline.inputs.base import float_type
from driftline.inputs.dense import DenseRows
from driftline.inputs.flags import none
from driftline.inputs.groups import Groups
from driftline.inputs.items import Items
from driftline.inputs.rows import Rows, refuse, rows_of
from driftline.inputs.sequences import Sequences
from driftline.inputs.sparse import SparseRows
from driftline.inputs.sparse_sequences import SparseSequences
from driftline.state.arena import LARGEST, MOST_ROWS, Field, grown_places
from driftline.typing import Inputs, Json

__all__ = ["Standardise", "Standardiser"]

#: Rounds of several rows.
Several = Items | Sequences

#: The version of the scaling; states of others are refused.
VERSION = 3


@dataclass(frozen=True, eq=False, repr=False)
class Standardise(Map):
    """Every feature by its distance from a robust location, in deviations, clipped.

    See :class:`Standardiser`, which has its state. Members of a committee whose maps are equal
    share one, so that rows are scaled once for all of them.

    Parameters
    ----------
    constant
        Whether rows get one more feature that is the same in all rows, for an intercept. With True
        it is as large as others are on average, so that it is not learned faster than they are; a
        number is its value.
    dtype
        The type of scaled dense rows, ``"float64"`` or ``"float32"``; the state is in double
        precision.

    Examples
    --------
    >>> Standardise(constant=False).transform(np.array([[1.0], [3.0], [1e9]])).round(2).tolist()
    [[0.0], [1.0], [1.41]]
    """

    constant: bool | float = True
    dtype: npt.DTypeLike = "float64"

    several = True
    same_entries = True
    largest_cell = math.inf

    def __post_init__(self) -> None:
        """Refuse a constant that is neither a flag nor a valid size, and other types of rows."""
        object.__setattr__(self, "dtype", float_type(self.dtype, "scaled rows").name)
        size = self.constant
        if isinstance(size, bool):
            return
        if not isinstance(size, (float, int, np.number)) or not 0.0 < size <= 100.0:
            raise InputError(f"constant must be True, False or a size up to 100, not {size!r:.80}")
        object.__setattr__(self, "constant", float(size))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Standardise) and self._told() == other._told()

    def __hash__(self) -> int:
        return hash((Standardise, self._told()))

    def __repr__(self) -> str:
        """Name the constant, and the type if it is not the usual one."""
        more = "" if self.dtype == "float64" else f", dtype={self.dtype!r}"
        return f"Standardise(constant={self.constant!r}{more})"

    def _told(self) -> tuple[bool, float, object]:
        """Return the fields in a form in which the flag True differs from the size 1."""
        return isinstance(self.constant, bool), float(self.constant), self.dtype

    def mapper(self) -> Standardiser:
        """Return a mapper that has seen no rows."""
        return Standardiser(self.constant, self.dtype)

    @property
    def longest(self) -> float:
        """The norm of cells of 3, divided by the root of their number, and the constant."""
        return math.hypot(3.0, float(self.constant))

    def width(self, features: int) -> int:
        """Return one more than the features with a constant, else the same."""
        return features + (self.constant is not False)

    def norm(self, features: int) -> float:
        """Return the norm of cells of 3, divided by the root of their number, and the constant."""
        if self.constant is True:
            return math.sqrt(9.0 + 1.0 / features)
        return math.sqrt(9.0 + float(self.constant) ** 2)

    def fields(self, features: int, sparse: bool) -> tuple[Field, ...]:
        """Count rows, and keep location, scale and last cells of every feature."""
        rows = Field("rows", least=0.0, most=MOST_ROWS)
        if sparse:
            return (rows, Field("norms", least=0.0), *_each(SPARSE))
        recent = Field("recent", (dense.WINDOW, "features"))
        head = (rows, Field("block", least=0.0), Field("next", least=0.0))
        return (*head, *_each(DENSE), recent)

    def add(self, state: Any, old: int) -> None:
        """Let new features have been 0 in all dense rows so far."""
        if hasattr(state, "recent"):
            state.count[old:] = min(float(state.rows), dense.WINDOW)

    def places(self, old: int, new: int) -> np.ndarray:
        """Put new features after the old, before the constant."""
        return grown_places(self.width(old), self.width(new), kept=int(self.constant is not False))


#: What is learned of every feature of dense rows, in the order of their indices: the value of a
#: feature that was always 0, and whether it is never negative.
DENSE = {
    "shown": (0.0, False),
    "inverse": (dense.UNKNOWN, True),
    "limit": (dense.UNLIMITED, True),
    "center": (0.0, False),
    "count": (0.0, True),
    "sum": (0.0, False),
    "sum_sq": (0.0, True),
    "tally": (0.0, False),
    "clipped": (0.0, False),
    "mean": (0.0, False),
    "square": (1.0, False),
    "target": (dense.OTHERS**2, False),
    "wide": (dense.UNSURE, False),
    "far": (0.0, True),
}

#: The same of sparse rows.
SPARSE = {"count": (0.0, True), "square": (0.0, True), "streak": (0.0, False), "far": (0.0, True)}


def _each(fields: dict[str, tuple[float, bool]]) -> list[Field]:
    pairs = fields.items()
    return [
        Field(name, ("features",), added=added, least=0.0 if counted else -LARGEST)
        for name, (added, counted) in pairs
    ]


class Standardiser(Mapper):
    """Centres and scales every feature online, robustly, and clips it.

    A cell becomes its distance from the feature's location over its deviation, 3 or -3 at most, and
    a row is divided by the root of the number of features: norms are 1 on average, and 3 at most.
    Location and deviation follow the stream. Neither 5% of bad cells nor 30 bad rows in a row move
    them by much, and a cell far outside becomes 0 if the feature's tails are not heavy; a lasting
    tenfold change, or one by any larger factor, is followed within a thousand rows: see
    :mod:`driftline.features.scaling`. Sparse rows are not centred, so that they stay sparse, and
    have norm 1 at most: see :mod:`driftline.features.sparse_scaling`. So the same rows in both
    forms are scaled differently.

    A row is scaled by what was known before it came; in the first 64 rows it also counts itself.
    Scaling without learning (:meth:`look`) therefore gives what :meth:`piece` would give next. The
    same rows in pieces give the same numbers. Bounds then hold for the scaled inputs, and for
    comparators that act on them: what a weight means may change as scales are learned.

    Where a round has several vectors, as documents of a query or positions of a sequence, all are
    scaled by what was known before the round, and then remembered one after the other. In the first
    64 rows a round with more vectors than all before it also counts itself.

    Parameters
    ----------
    constant
        Whether rows get one more feature that is the same in all rows, for an intercept. With True
        it is as large as others are on average, so that it is not learned faster than they are; a
        number is its value.
    dtype
        The type of scaled dense rows; the state is in double precision.

    Examples
    --------
    >>> scaling = Standardiser(constant=False)
    >>> rows = np.array([[1.0, 900.0], [3.0, 100.0], [2.0, 500.0], [1e9, 500.0]])
    >>> scaling.transform(rows).round(2)
    array([[ 0.  ,  0.  ],
           [ 0.71, -0.71],
           [ 0.5 ,  0.59],
           [ 1.22,  0.49]])
    >>> first, second = Standardiser(constant=False).transform([rows[:2], rows[2:]])
    >>> bool((second == scaling.look(rows[2:]).array).all())
    False
    """

    one_kind = True

    def __init__(self, constant: bool | float = True, dtype: npt.DTypeLike = np.float64) -> None:
        self.dtype = float_type(dtype, "scaled rows")
        part = Standardise(constant, dtype)
        self.constant = part.constant
        super().__init__(part)

    def _clear(self) -> None:
        self._buffer = np.empty((0, 0))
        self._room = np.empty(dense.ROOM)  # for rows that are learned from
        self._before = np.empty(0)  # the state, while rows are learned from that may be refused

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[Mapped, np.ndarray]:
        """Return scaled rows; dense ones come in a buffer that the next piece is written to."""
        if self.features is None:
            made = self.copy()
            made.begin(rows)
            return made.mapped(rows, start, stop, learning)
        if isinstance(rows, SparseSequences):
            return self._sparse_rounds(rows, start, stop, learning)  # type: ignore[return-value]
        if isinstance(rows, SparseRows):
            return self._sparse(rows, start, stop, learning)
        given = rows.arrays(start, stop)
        out = self._buffered(len(given[0])) if learning is not None else self._empty(len(given[0]))
        if isinstance(rows, Groups):
            self._scale_rounds(rows, start, given, out, learning)
            return rows.with_members(out, given[1]), self.state  # type: ignore[return-value]
        self._scale(rows, start, given[0], out, learning)
        return DenseRows(out), self.state

    def look(self, inputs: Inputs) -> Mapped:
        """Scale every row as if it came next, without learning.

        >>> scaling = Standardiser(constant=False)
        >>> _ = scaling.transform(np.array([[1.0, 900.0], [3.0, 100.0]]))
        >>> scaling.look(np.array([[3.0, 500.0], [3.0, 900.0]])).array.round(2)
        array([[0.76, 0.59],
               [0.76, 0.79]])
        """
        rows = rows_of(inputs)
        if self.features is None:
            raise InputError("no row was seen yet to scale by: expected rows to learn from first")
        return self.look_at(rows)

    def remember(self, rows: Rows) -> None:
        """Learn from rounds that were scaled before; the rows of a round one after the other."""
        if isinstance(rows, SparseSequences):
            rows = rows.positions
        elif not isinstance(rows, (DenseRows, SparseRows)):
            rows = DenseRows(rows.arrays(0, rows.rounds)[0])
        self.piece(rows, 0, rows.rounds)

    @property
    def counted(self) -> float | None:
        """The rows learned from, which kernels count; None before the first."""
        return None if self.features is None else float(self.state.item(0))

    @property
    def far(self) -> np.ndarray:
        """How many cells of each feature were far outside, at more than 20 deviations."""
        if self.features is None:
            return np.zeros(0, dtype=np.int64)
        made: np.ndarray = self.layout.views(self.state).far.astype(np.int64)
        return made

    @property
    def kept(self) -> np.ndarray | None:
        """The last rows that are kept, unscaled: at most 64 dense rows, None for sparse ones."""
        if self.features is None or self.sparse:
            return None
        count = int(min(self.state[dense.ROWS], dense.WINDOW))
        made: np.ndarray = self.layout.views(self.state).recent[:count].copy()
        return made

    def facts(self) -> Json:
        """Return the constant, the precision, and the version of what is learned."""
        return {"constant": self.constant, "dtype": self.dtype.name, "version": VERSION}

    def _empty(self, rows: int) -> np.ndarray:
        """Return an array for scaled rows, with the constant already in its column."""
        out = np.empty((rows, self.outputs), self.dtype)
        out[:, self.features :] = self._constant
        return out

    def _buffered(self, rows: int) -> np.ndarray:
        """Return the same in the buffer."""
        if self._buffer.shape[0] < rows or self._buffer.shape[1] != self.outputs:
            self._buffer = self._empty(rows)
        return self._buffer[:rows]

    @property
    def _constant(self) -> float:
        assert self.features is not None
        return self.constant if self.constant is not True else 1.0 / math.sqrt(self.features)

    @property
    def _rounds_room(self) -> int:
        """The size of the buffer for rounds: in the beginning the state is copied, too."""
        assert self.features is not None
        early = self.state[dense.ROWS] < dense.WINDOW
        return dense.ROOM + self.features + (self.state.size if early else 0)

    @property
    def _precision(self) -> str:
        """The suffix of the names of kernels."""
        return "" if self.dtype == np.float64 else "_single"

    def _scale(
        self,
        rows: Rows,
        start: int,
        inputs: np.ndarray,
        out: np.ndarray,
        learning: np.ndarray | None,
    ) -> None:
        """Scale rows, and learn from them; if one is refused, from none."""
        count, learns = len(inputs), learning is not None and bool(learning.any())
        if learns and 1 < count < dense.WINDOW and not np.isfinite(inputs).all():
            refuse(rows, start + int(np.argmin(np.isfinite(inputs).all(axis=1))))
        saved = learns and count >= dense.WINDOW
        if saved:
            self._save()
        scale = getattr(dense, "standardise" + self._precision)
        flags = none(count) if learning is None else learning
        good = scale(inputs, self.state, self._room, flags, out)  # looking needs no room
        if good < count:
            if saved:
                self.state[:] = self._before
            refuse(rows, start + good)

    def _scale_rounds(
        self,
        rows: Several,
        start: int,
        given: tuple[np.ndarray, ...],
        out: np.ndarray,
        learning: np.ndarray | None,
    ) -> None:
        """Do the same with rounds of several rows."""
        count, size = len(given[1]) - 1, self._rounds_room
        saved = learning is not None and count > 1  # a round is read before any of it is learned
        if learning is None:
            room = np.empty(size)
        else:
            room = self._room = self._room if self._room.size >= size else np.empty(size)
        if saved:
            self._save()
        scale = getattr(dense, "standardise_rounds" + self._precision)
        flags = none(count) if learning is None else learning
        good = scale(*given, self.state, room, flags, out)
        if good < count:
            if saved:
                self.state[:] = self._before
            refuse(rows, start + good)

    def _save(self) -> None:
        """Keep a checkpoint of the state, for a rollback."""
        if self._before.shape != self.state.shape:
            self._before = np.empty_like(self.state)
        self._before[:] = self.state

    def _sparse(
        self, rows: SparseRows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[SparseRows, np.ndarray]:
        given = rows.arrays(start, stop)
        self._check_entries(rows, start, given, None)
        return self._scale_sparse("scale_sparse", "row", rows, start, given, (), learning)

    def _sparse_rounds(
        self, rows: SparseSequences, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[SparseSequences, np.ndarray]:
        """Do the same with rounds of several rows; if one is refused, nothing is learned."""
        *given, rounds, _ = rows.arrays(start, stop)
        self._check_entries(rows, start, given, rounds)
        words = "scale_sparse_rounds", "sequence", rows.positions
        made, state = self._scale_sparse(*words, start, given, (rounds,), learning)
        return rows.with_positions(made, rounds), state

    def _check_entries(
        self, rows: Rows, start: int, given: Sequence[np.ndarray], rounds: np.ndarray | None
    ) -> None:
        """Refuse the first row or round with an entry that is not finite."""
        values, _, starts = given
        bad = ~np.isfinite(values[starts[0] : starts[-1]])
        if bad.any():
            place = int(np.searchsorted(starts, np.argmax(bad) + starts[0], side="right")) - 1
            if rounds is not None:
                place = int(np.searchsorted(rounds, place, side="right")) - 1
            refuse(rows, start + place)

    def _scale_sparse(
        self,
        name: str,
        kind: str,
        rows: SparseRows,
        start: int,
        given: Sequence[np.ndarray],
        rounds: tuple[np.ndarray, ...],
        learning: np.ndarray | None,
    ) -> tuple[SparseRows, np.ndarray]:
        """Return scaled CSR rows, and the state after them."""
        _, columns, starts = given
        extra, size = self.constant is not False, int(starts[-1] - starts[0])
        size += extra * (len(starts) - 1)
        spare = int(np.diff(starts).max(initial=0)) + 1 if rounds else 0
        out, out_columns = np.empty(size + spare), np.empty(size + spare, columns.dtype)
        made = (out, out_columns, np.empty_like(starts))
        scale = getattr(sparse, name + ("_32" if columns.dtype == np.int32 else "_64"))
        constant = -1.0 if self.constant is True else float(self.constant)
        count = len((rounds or (starts,))[0]) - 1
        flags = none(count) if learning is None else learning
        state = self.state.copy() if flags.any() else self.state
        good = scale(*given, *rounds, state, constant, flags, *made)
        if good < count:
            raise InputError(
                f"sparse inputs were changed while they were read, at {kind} {start + good}"
            )
        assert self.features is not None
        cells = out[:size], out_columns[:size], made[2]
        return SparseRows.made(*cells, self.features + extra, rows.kind), state
