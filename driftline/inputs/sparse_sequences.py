"""Sequences whose positions are sparse rows."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.inputs.groups import batch_rounds, places_of
from driftline.inputs.sequences import Sequences
from driftline.inputs.sparse import SparseRows
from driftline.kernels import Kernel, play_sparse_chains, slots_room
from driftline.kernels.chains import sequence_sq
from driftline.typing import Inputs, Saved

__all__ = ["SparseSequences", "sparse_positions"]


def sparse_positions(
    inputs: Inputs, group: str = "sequence"
) -> tuple[SparseRows, np.ndarray] | None:
    """Return all positions and where sequences start, if inputs are sparse; else None.

    They are a CSR matrix with the places, or a list of CSR matrices. ``group`` is what a round is
    called, for messages.
    """
    if isinstance(inputs, tuple) and len(inputs) == 2 and hasattr(inputs[0], "tocsr"):
        rows = SparseRows(inputs[0])
        return rows, np.array(places_of(inputs[1], rows.rounds), dtype=np.int64)
    if not isinstance(inputs, list) or not inputs or not hasattr(inputs[0], "tocsr"):
        return None
    parts = [SparseRows(matrix) if hasattr(matrix, "tocsr") else None for matrix in inputs]
    for t, part in enumerate(parts):
        if part is None or part.features != parts[0].features:  # type: ignore[union-attr]
            seen = "is not sparse" if part is None else f"has {part.features} features"
            raise InputError(
                f"{group} {t} {seen}, but {group} 0 is a sparse matrix of "
                f"{parts[0].features} features"  # type: ignore[union-attr]
            )
    places = np.cumsum([0, *(part.rounds for part in parts)])  # type: ignore[union-attr]
    return joined([part for part in parts if part is not None]), places.astype(np.int64)


def joined(parts: list[SparseRows]) -> SparseRows:
    """Return rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    values = [part.values[part.starts[0] : part.starts[-1]] for part in parts]
    columns = [part.columns[part.starts[0] : part.starts[-1]] for part in parts]
    sizes = [np.diff(part.starts) for part in parts]
    starts = np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)
    wide = starts[-1] >= 2**31 or any(own.dtype != np.int32 for own in columns)
    kind: Any = np.int64 if wide else np.int32
    made = np.concatenate(columns).astype(kind, copy=False), starts.astype(kind)
    return SparseRows.made(np.concatenate(values), *made, parts[0].features, parts[0].kind)


class SparseSequences(Sequences):
    """One CSR matrix (positions x features) a round; weights as those of dense sequences.

    >>> from scipy.sparse import csr_array
    >>> rows = SparseSequences(*sparse_positions([csr_array(np.eye(3)[:2])]), tags=2)
    >>> rows.scores(np.arange(10.0).reshape(2, 5), False, 0, False)
    array([0., 5., 1., 6., 3., 4., 8., 9.])
    """

    transposed = True

    def __init__(
        self, positions: SparseRows, places: np.ndarray, tags: int, transitions: bool = True
    ):
        self.tags, self.transitions = tags, transitions
        self.before, self.labels, self.asked = 0, None, None
        self._take(positions, places)
        empty = np.flatnonzero(self.sizes == 0)
        if empty.size:
            raise InputError(f"{self.group} {empty[0]} is empty: it has no {self.members}")

    def _take(self, positions: SparseRows, places: np.ndarray) -> None:
        self.positions, self.places = positions, places
        self.sizes = np.diff(places)
        self.rounds, self.features, self.size = len(places) - 1, positions.features, positions.size
        self.largest = int(self.sizes.max(initial=0))
        self.block = batch_rounds(self.rounds, self.size)
        #: The most entries of a sequence.
        self.most_entries = int(np.diff(positions.starts[places]).max(initial=0))

    def with_positions(self, positions: SparseRows, places: np.ndarray) -> Self:
        """Return sequences of the same kind from rows of our own, which need no checks."""
        made = copy.copy(self)
        made.before = 0
        made._take(positions, places)
        return made

    # -- for loops

    def loop(self, dtype: np.dtype) -> Kernel:
        """Return the compiled loop over rows of this kind, for weights of this type."""
        return play_sparse_chains[dtype, self.positions.columns.dtype]

    @property
    def gradient_size(self) -> int:
        """The room for the gradient of one round, and for finding it."""
        return slots_room(self.features, self.most_entries, self.tags)

    def arrays(self, start: int, stop: int, dtype: npt.DTypeLike = np.float64) -> tuple[Any, ...]:
        """Return values, columns and where positions start; where sequences start; features."""
        first, last = self.places[start], self.places[stop]
        places = self.places[start : stop + 1] - first
        return (*self.positions.arrays(first, last, dtype), places, self.features)

    # -- in Python

    @property
    def groups(self) -> list[np.ndarray]:  # type: ignore[override]
        """Every sequence as a dense array."""
        return [self.matrix(t, False) for t in range(self.rounds)]

    @property
    def entries_arrays(self) -> list[np.ndarray]:
        """All values."""
        return [self.positions.values]

    def of_round(self, t: int) -> SparseRows:
        """Return the positions of one sequence."""
        return self._rows(np.arange(self.places[t], self.places[t + 1]))

    def _rows(self, index: np.ndarray) -> SparseRows:
        """Return some positions: a copy."""
        rows = self.positions
        starts = rows.starts.astype(np.int64)
        sizes = starts[index + 1] - starts[index]
        made = np.concatenate([[0], np.cumsum(sizes)])
        picked = np.arange(made[-1]) + np.repeat(starts[index] - made[:-1], sizes)
        places = rows.columns[picked], made.astype(rows.starts.dtype)
        return SparseRows.made(rows.values[picked], *places, rows.features, rows.kind)

    def matrix(self, t: int, intercept: bool) -> np.ndarray:
        """Return one sequence as a dense array, with a column of ones for an intercept."""
        rows = self.of_round(t)
        x = np.zeros((rows.rounds, self.features + intercept))
        x[:, self.features :] = 1.0
        x[np.repeat(np.arange(rows.rounds), np.diff(rows.starts)), rows.columns] = rows.values
        return x

    def scores(self, stored: np.ndarray, transposed: bool, t: int, intercept: bool) -> np.ndarray:
        """Return the scores of positions and of transitions, at the cost of the entries."""
        weights, rows = stored.T if transposed else stored, self.of_round(t)
        own = weights[:, : self.features + intercept]
        nodes = [rows.scores(own, False, i, intercept) for i in range(rows.rounds)]
        return self.with_pairs(np.concatenate(nodes), weights)

    def norm_sq(self, t: int, intercept: bool) -> float:
        """Return a bound of the squared norm, see :meth:`Sequences.norm_sq`."""
        values, length = self.of_round(t).values.astype(np.float64), int(self.sizes[t])
        with np.errstate(over="ignore"):
            entries_sq = float(values @ values) + length * intercept
        return sequence_sq(entries_sq, length, self.transitions)

    def first_bad_row(self, dtype: npt.DTypeLike = np.float64) -> int | None:
        """Return the first sequence with an entry that is not finite, or None."""
        bad = self.positions.first_bad_row(dtype)
        return None if bad is None else int(np.searchsorted(self.places, bad, side="right")) - 1

    def sample(self, rows: np.ndarray) -> bytes:
        """Return the sizes of some sequences and a position of each as bytes, for a digest."""
        middle = self.places[rows] + self.sizes[rows] // 2
        return self.sizes[rows].tobytes() + self.positions.sample(middle)

    def taken(self, index: np.ndarray) -> Self:
        """Return sequences by their places: a copy."""
        sizes = self.sizes[index]
        places = np.concatenate([[0], np.cumsum(sizes)])
        picked = np.arange(places[-1]) + np.repeat(self.places[index] - places[:-1], sizes)
        return self.with_positions(self._rows(picked), places)

    def followed_by(self, *then: Self) -> Self:
        """Return these sequences, and then others."""
        every = (self, *then)
        places = np.concatenate([[0], np.cumsum(np.concatenate([one.sizes for one in every]))])
        return then[-1].with_positions(joined([one.positions for one in every]), places)

    def to_arrays(self) -> Saved:
        """Return all sequences as plain data and arrays."""
        made = self.positions.matrix
        places = {name: getattr(made, name).astype(np.int64) for name in ("indices", "indptr")}
        kept = made.data.dtype in (np.float64, np.float32)
        values = made.data if kept else made.data.astype(np.float64)
        arrays = {"inputs": values, "lengths": self.sizes, **places}
        return {"features": self.features}, arrays
