"""Some rounds of others, in any order; rounds after others; and rounds as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.inputs.base import cast as convert
from driftline.inputs.dense import DenseRows
from driftline.inputs.layout import Layout
from driftline.inputs.rows import Rows
from driftline.inputs.sparse import SparseRows
from driftline.inputs.sparse_sequences import joined
from driftline.typing import CheckedLabels, Inputs, Json, Saved

__all__ = ["after", "from_arrays", "join", "take", "take_labels", "to_arrays", "view"]


def take(rows: Rows, index: np.ndarray) -> Rows:
    """Return rounds by their places: a copy."""
    if isinstance(rows, DenseRows):
        return DenseRows(rows.array[index])
    if isinstance(rows, SparseRows):
        return SparseRows(rows.matrix[index])
    return rows.taken(index)


class TakenRows(DenseRows):
    """Dense rows by their places in others, copied batch by batch: their source may be large."""

    __slots__ = ("_index", "_made", "_source")

    def __init__(self, source: np.ndarray, index: np.ndarray):
        self._source, self._index = source, index
        self._made: np.ndarray | None = None
        self.before, self.labels, self.asked = 0, None, None
        self.rounds, self.features = len(index), source.shape[1]
        self.size = self.rounds * self.features

    @property
    def array(self) -> np.ndarray:  # type: ignore[override]
        """All rows, copied when they are first asked for together."""
        if self._made is None:
            self._made = self._source[self._index]
        return self._made

    def arrays(
        self, start: int, stop: int, dtype: npt.DTypeLike = np.float64
    ) -> tuple[np.ndarray, ...]:
        """Return rows ``start`` to ``stop`` as the loop takes them."""
        return (convert(self._source[self._index[start:stop]], dtype),)

    def row(self, t: int) -> np.ndarray:
        """Return one row as a vector, contiguous."""
        return np.ascontiguousarray(self._source[self._index[t]], dtype=np.float64)


def view(rows: Rows, index: np.ndarray) -> Rows:
    """Return rounds by their places, without a copy of dense rows as a whole."""
    if isinstance(rows, DenseRows):
        return TakenRows(rows.array, index)
    return take(rows, index)


def after(first: Rows, then: Rows) -> Rows:
    """Return rounds followed by others of the same kind."""
    if type(first) is not type(then) or first.features != then.features:
        raise InputError(
            f"rounds of {first.features} features are waiting for their labels, and cannot be "
            f"followed by other rows, of {then.features} features: expected rows of the same kind"
        )
    if isinstance(first, DenseRows) and isinstance(then, DenseRows):
        return DenseRows(np.concatenate([first.array, then.array]))
    if isinstance(first, SparseRows) and isinstance(then, SparseRows):
        from scipy.sparse import vstack

        return SparseRows(vstack([first.matrix, then.matrix], format="csr"))
    followed: Rows = cast(Any, first).followed_by(then)
    return followed


def join(rounds: Sequence[Rows]) -> Rows | None:
    """Return single rounds one after the other; None if they are not of one kind.

    >>> rows = join([DenseRows(np.ones((1, 2))), DenseRows(np.zeros((1, 2)))])
    >>> rows.rounds, join([DenseRows(np.ones((1, 2))), DenseRows(np.zeros((1, 3)))])
    (2, None)
    """
    first = rounds[0]
    if any(type(one) is not type(first) or one.features != first.features for one in rounds):
        return None
    if isinstance(first, DenseRows):
        arrays = [one.array for one in cast(Any, rounds)]
        same = all(array.dtype == arrays[0].dtype for array in arrays)
        return DenseRows(np.concatenate(arrays)) if same else None
    if isinstance(first, SparseRows):
        return joined(cast(Any, rounds))
    followed: Rows = cast(Any, first).followed_by(*rounds[1:])
    return followed


def take_labels(labels: CheckedLabels, index: np.ndarray) -> CheckedLabels:
    """Return labels by their places."""
    if isinstance(labels, list):
        return [labels[i] for i in index.tolist()]
    return np.asarray(labels)[index]


def to_arrays(rows: Rows) -> Saved:
    """Return rounds as plain data and arrays, for a file."""
    if isinstance(rows, DenseRows):
        return {}, {"inputs": _plain(rows.array)}
    if isinstance(rows, SparseRows):
        made = rows.matrix
        places = {name: getattr(made, name).astype(np.int64) for name in ("indices", "indptr")}
        return {"features": rows.features}, {"inputs": _plain(made.data), **places}
    return rows.to_arrays()


def from_arrays(layout: Layout, about: Json, arrays: Mapping[str, np.ndarray]) -> Rows:
    """Return rounds from what :func:`to_arrays` returned, checked as any inputs are."""
    inputs: Inputs = arrays["inputs"]
    if "indptr" in arrays:
        from scipy.sparse import csr_array

        places = inputs, arrays["indices"], arrays["indptr"]
        inputs = csr_array(places, shape=(len(places[2]) - 1, int(about["features"])))
    if "lengths" in arrays:
        inputs = (inputs, np.cumsum(np.r_[0, arrays["lengths"]]))
    return layout.rows(inputs)


def _plain(array: np.ndarray) -> np.ndarray:
    """Return an array in a precision that files have."""
    kept = array.dtype in (np.float64, np.float32)
    return array if kept else array.astype(np.float64)
