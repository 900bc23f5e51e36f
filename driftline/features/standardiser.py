"""Inputs of any scale, standardised as they come."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.features import scaling as dense
from driftline.features import sparse_scaling as sparse
from driftline.features.base import Mapped, Mapper
from driftline.inputs.base import float_type
from driftline.inputs.dense import DenseRows
from driftline.inputs.flags import learned, none
from driftline.inputs.groups import Groups
from driftline.inputs.items import Items
from driftline.inputs.rows import Rows, refuse, rows_of
from driftline.inputs.sequences import Sequences
from driftline.inputs.sparse import SparseRows
from driftline.inputs.sparse_sequences import SparseSequences
from driftline.kernels import zeros
from driftline.typing import Inputs, Json, Saved

__all__ = ["Standardiser"]

#: Rounds of several rows.
Several = Items | Sequences

#: The version of the scaling; states of others are refused.
VERSION = 3


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

    def __init__(self, constant: bool | float = True, dtype: npt.DTypeLike = np.float64) -> None:
        if not (isinstance(constant, bool) or 0.0 < constant <= 100.0):
            raise InputError(f"constant must be True, False or a size up to 100, not {constant!r}")
        self.constant, self.dtype = constant, float_type(dtype, "scaled rows")
        #: The number of features, None before the first row; and whether rows are sparse.
        self.features: int | None = None
        self.sparse = False
        self.state = np.zeros(0)
        self._buffer = np.empty((0, 0))
        self._room = np.empty(dense.ROOM)  # for rows that are learned from
        self._before = np.empty(0)  # the state, while rows are learned from that may be refused

    @property
    def longest(self) -> float:
        """A bound of the norm of scaled rows: that of cells of 3, and the constant."""
        return math.hypot(3.0, float(self.constant))

    @property
    def outputs(self) -> int:
        """How many features scaled rows have."""
        assert self.features is not None
        return self.features + (self.constant is not False)

    def piece(self, rows: Rows, start: int, stop: int) -> Mapped:
        """Scale rows ``start`` to ``stop``, and learn from them; if one is refused, from none.

        Dense rows come in a buffer that the next piece is written to.
        """
        self._meet(rows)
        if self.features is None:
            made = self._begun(rows)
            first = made.piece(rows, start, stop)
            self._become(made)
            return first
        if isinstance(rows, Groups):
            return self._groups(rows, start, stop)  # type: ignore[return-value]
        if isinstance(rows, SparseRows):
            return self._sparse(rows, start, stop, learned(rows, start, stop))
        out, learning = self._buffered(stop - start), learned(rows, start, stop)
        return self._dense(rows, start, stop, out, learning)

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

    def look_at(self, rows: Rows, start: int = 0, stop: int | None = None) -> Mapped:
        """Do the same with wrapped rows; works before the first row, too."""
        self._meet(rows)
        if self.features is None:
            return self._begun(rows).look_at(rows, start, stop)
        stop = rows.rounds if stop is None else stop
        if isinstance(rows, Groups):
            return self._look_at_groups(rows, start, stop)  # type: ignore[return-value]
        if isinstance(rows, SparseRows):
            return self._sparse(rows, start, stop, none(stop - start))
        return self._dense(rows, start, stop, self._empty(stop - start), none(stop - start))

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
        kind, place = (sparse, sparse.FAR) if self.sparse else (dense, dense.FAR)
        return self.state[kind.HEADER :].reshape(kind.WIDTH, -1)[place].astype(np.int64)

    @property
    def kept(self) -> np.ndarray | None:
        """The last rows that are kept, unscaled: at most 64 dense rows, None for sparse ones."""
        if self.features is None or self.sparse:
            return None
        about = self.state[dense.HEADER :].reshape(dense.WIDTH, self.features)
        count = int(min(self.state[dense.ROWS], dense.WINDOW))
        return about[dense.FAR + 1 : dense.FAR + 1 + count].copy()

    def config(self) -> Json:
        """Return all but the state as plain data."""
        names = ("constant", "features", "sparse")
        made = {name: getattr(self, name) for name in names}
        return made | {"dtype": self.dtype.name, "version": VERSION}

    @classmethod
    def from_config(cls, config: Json, state: np.ndarray) -> Standardiser:
        """Return the scaling from what :meth:`config` returned, and its state."""
        features, constant = config["features"], config["constant"]
        if (version := config.get("version")) != VERSION:
            raise InputError(
                f"expected a scaling of version {VERSION}, not {version!r}: its state means "
                "something else, and must be learned again"
            )
        made = cls(constant if isinstance(constant, bool) else float(constant), config["dtype"])
        if features is not None:
            if type(features) is not int or features < 1:
                raise InputError(f"a scaling has 1 feature or more, not {features!r:.80}")
            kind = sparse if config["sparse"] else dense
            if state.shape != (kind.HEADER + kind.WIDTH * features,):
                raise InputError(
                    f"a scaling of {features} features does not have {state.shape} numbers"
                )
            made.features, made.sparse = features, bool(config["sparse"])
            made.state = np.array(state, dtype=np.float64)
            made.check_state()
        elif state.size:
            raise InputError("a scaling that has seen no rows must have an empty state")
        return made

    def to_saved(self) -> Saved:
        """Return what was learned as plain data and arrays."""
        return self.config(), {"state": self.state.copy()}

    def resume(self, about: Json, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a state, if it is valid for this scaling."""
        state = arrays["state"]
        if not isinstance(state, np.ndarray) or state.dtype != np.float64 or state.ndim != 1:
            raise InputError(f"the state of a scaling is a vector of numbers, not {state!r:.80}")
        made = Standardiser.from_config(dict(about), state)
        if (made.constant, made.dtype) != (self.constant, self.dtype):
            raise InputError(f"{made!r} is not of the kind of {self!r}")
        self.features, self.sparse, self.state = made.features, made.sparse, made.state

    def grown(self, features: int) -> tuple[Standardiser, np.ndarray]:
        """Return a scaling for longer rows; the constant stays the last."""
        if self.features is None:
            return self.copy(), np.zeros(0, dtype=np.int64)
        known = np.r_[np.arange(self.features), np.full(features - self.features, -1)]
        rest = np.arange(self.features, self.outputs)
        return self.with_features(features), np.r_[known, rest]

    def copy(self) -> Standardiser:
        """Return an independent copy."""
        other = Standardiser(self.constant, self.dtype)
        other.features, other.sparse, other.state = self.features, self.sparse, self.state.copy()
        return other

    def with_features(self, features: int) -> Standardiser:
        """Return a scaling for longer rows, in which the new features were 0 so far."""
        other = self.copy()
        if self.features is not None:
            kind = sparse if self.sparse else dense
            about = self.state[kind.HEADER :].reshape(kind.WIDTH, self.features)
            longer = np.pad(about, [(0, 0), (0, features - self.features)])
            if not self.sparse:
                longer[dense.INVERSE, self.features :] = dense.UNKNOWN
                longer[dense.SQUARE, self.features :] = 1.0
                longer[dense.WIDE, self.features :] = dense.UNSURE
                longer[dense.LIMIT, self.features :] = dense.UNLIMITED
                longer[dense.TARGET, self.features :] = dense.OTHERS**2
                longer[dense.COUNT, self.features :] = min(self.state[dense.ROWS], dense.WINDOW)
            other.state = np.r_[self.state[: kind.HEADER], longer.ravel()]
            other.features = features
        return other

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

    def _begun(self, rows: Rows) -> Standardiser:
        """Return a scaling that is prepared for its first rows, which are like these."""
        made = Standardiser(self.constant, self.dtype)
        made.features, made.sparse = rows.features, rows.transposed
        kind = sparse if made.sparse else dense
        made.state = zeros(kind.HEADER + kind.WIDTH * rows.features)
        return made

    def _become(self, made: Standardiser) -> None:
        """Take over the state of another scaling, which has seen the first rows."""
        self.features, self.sparse, self.state = made.features, made.sparse, made.state
        self._buffer = made._buffer

    def _meet(self, rows: Rows) -> None:
        """Refuse rows of another kind or length than those before."""
        self.meet(rows)
        is_sparse = rows.transposed
        if self.features is not None and self.sparse != is_sparse:
            kinds = ("dense", "sparse")
            raise InputError(
                f"inputs are {kinds[is_sparse]}, but those before were {kinds[self.sparse]}: they "
                "are scaled in different ways"
            )

    def check_state(self) -> None:
        """Refuse a state that no rows can lead to."""
        if self.features is None:
            return
        kind = sparse if self.sparse else dense
        about = self.state[kind.HEADER :].reshape(kind.WIDTH, -1)
        counted = [sparse.COUNT, sparse.SQUARE, sparse.FAR]
        if not self.sparse:
            counted = [dense.INVERSE, dense.LIMIT, dense.COUNT, dense.SUM_SQ, dense.FAR]
        head = self.state[: kind.HEADER]
        good = np.isfinite(self.state).all() and (head >= 0.0).all() and (about[counted] >= 0).all()
        if not good or head[0] > 2.0**53:
            raise InputError("what a scaling remembers must be finite, and counts not negative")

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

    def _dense(
        self, rows: Rows, start: int, stop: int, out: np.ndarray, learning: np.ndarray
    ) -> DenseRows:
        (inputs,), learns = rows.arrays(start, stop), bool(learning.any())
        if learns and 1 < len(inputs) < dense.WINDOW and not np.isfinite(inputs).all():
            refuse(rows, start + int(np.argmin(np.isfinite(inputs).all(axis=1))))
        saved = learns and len(inputs) >= dense.WINDOW
        if saved:
            self._save()
        scale = getattr(dense, "standardise" + self._precision)
        good = scale(inputs, self.state, self._room, learning, out)  # looking needs no room
        if good < stop - start:
            if saved:
                self.state[:] = self._before
            refuse(rows, start + good)
        return DenseRows(out)

    def _groups(self, rows: Several, start: int, stop: int) -> Several:
        """Scale rounds of several rows, and learn from them; if one is refused, from none."""
        assert self.features is not None
        if isinstance(rows, SparseSequences):
            return self._sparse_rounds(rows, start, stop, learned(rows, start, stop))
        inputs, starts = rows.arrays(start, stop)
        if self._room.size < self._rounds_room:
            self._room = np.empty(self._rounds_room)
        saved = stop - start > 1  # a round is read to its end before any of it is learned
        if saved:
            self._save()
        name = "standardise_rounds" + self._precision
        out = self._buffered(len(inputs))
        given = (inputs, starts, self.state, self._room, learned(rows, start, stop), out)
        good = getattr(dense, name)(*given)
        if good < stop - start:
            if saved:
                self.state[:] = self._before
            refuse(rows, start + good)
        return rows.with_members(out, starts)

    def _look_at_groups(self, rows: Several, start: int, stop: int) -> Several:
        """Scale each of some rounds of several rows as if it came next."""
        if isinstance(rows, SparseSequences):
            return self._sparse_rounds(rows, start, stop, none(stop - start))
        inputs, starts = rows.arrays(start, stop)
        out, room = self._empty(len(inputs)), np.empty(self._rounds_room)
        scale = getattr(dense, "standardise_rounds" + self._precision)
        good = scale(inputs, starts, self.state, room, none(stop - start), out)
        if good < stop - start:
            refuse(rows, start + good)
        return rows.with_members(out, starts)

    def _save(self) -> None:
        """Keep a checkpoint of the state, for a rollback."""
        if self._before.shape != self.state.shape:
            self._before = np.empty_like(self.state)
        self._before[:] = self.state

    def _sparse(self, rows: SparseRows, start: int, stop: int, learning: np.ndarray) -> SparseRows:
        values, columns, starts = rows.arrays(start, stop)
        bad = ~np.isfinite(values[starts[0] : starts[-1]])
        if bad.any():
            first = int(np.argmax(bad)) + int(starts[0])
            refuse(rows, start + int(np.searchsorted(starts, first, side="right")) - 1)
        extra = self.constant is not False
        out = np.empty(starts[-1] - starts[0] + extra * (stop - start))
        out_columns, out_starts = np.empty(out.size, columns.dtype), np.empty_like(starts)
        scale = sparse.scale_sparse_32 if columns.dtype == np.int32 else sparse.scale_sparse_64
        size = -1.0 if self.constant is True else float(self.constant)
        state = self.state.copy() if learning.any() else self.state
        made = (out, out_columns, out_starts)
        good = scale(values, columns, starts, state, size, learning, *made)
        if good < stop - start:
            raise InputError(
                f"sparse inputs were changed while they were read, at row {start + good}"
            )
        self.state = state
        return SparseRows.made(*made, rows.features + extra, rows.kind)

    def _sparse_rounds(
        self, rows: SparseSequences, start: int, stop: int, learning: np.ndarray
    ) -> SparseSequences:
        """Do the same with rounds of several rows; if one is refused, nothing is learned."""
        values, columns, starts, rounds, features = rows.arrays(start, stop)
        bad = ~np.isfinite(values[starts[0] : starts[-1]])
        if bad.any():
            first = int(np.argmax(bad)) + int(starts[0])
            row = int(np.searchsorted(starts, first, side="right")) - 1
            refuse(rows, start + int(np.searchsorted(rounds, row, side="right")) - 1)
        extra, count = self.constant is not False, len(starts) - 1
        size = int(starts[-1] - starts[0]) + extra * count
        longest = int(np.diff(starts).max(initial=0)) + 1
        out, out_columns = np.empty(size + longest), np.empty(size + longest, columns.dtype)
        made = (out, out_columns, np.empty_like(starts))
        narrow = columns.dtype == np.int32
        scale = sparse.scale_sparse_rounds_32 if narrow else sparse.scale_sparse_rounds_64
        constant = -1.0 if self.constant is True else float(self.constant)
        state = self.state.copy() if learning.any() else self.state
        good = scale(values, columns, starts, rounds, state, constant, learning, *made)
        if good < stop - start:
            raise InputError(
                f"sparse inputs were changed while they were read, at sequence {start + good}"
            )
        self.state = state
        scaled = SparseRows.made(
            out[:size], out_columns[:size], made[2], features + extra, rows.positions.kind
        )
        return rows.with_positions(scaled, rounds)
