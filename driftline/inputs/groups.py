"""Inputs of several vectors a round; their number may differ by round."""

from __future__ import annotations

import copy
import itertools
from typing import Self

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.inputs.base import check_features
from driftline.inputs.sparse import SparseRows
from driftline.typing import CheckedLabels, Inputs, Saved

__all__ = ["Groups", "batch_rounds", "places_of"]


class Groups:
    """Base of inputs with one array (members x features) a round.

    Parameters
    ----------
    inputs
        A list of two-dimensional arrays, or a pair of one array (or CSR matrix) with all members
        and the rows at which groups start, with the number of rows at the end.
    """

    transposed = False

    #: What a group and its members are called, for messages.
    group, members = "group", "members"

    def __init__(self, inputs: Inputs):
        whole: tuple[np.ndarray, np.ndarray] | None = None  # where groups lie side by side
        if isinstance(inputs, tuple) and len(inputs) == 2:
            inputs, whole = _cut(*inputs)
        try:
            self.groups = [np.asarray(array) for array in inputs]
        except (TypeError, ValueError) as error:
            raise InputError(
                f"expected a list with an array for every {self.group}: {error}"
            ) from error
        self.rounds = len(self.groups)
        self.features = self.groups[0].shape[-1] if self.groups and self.groups[0].ndim else 0
        for t, array in enumerate(self.groups):
            if array.ndim != 2 or array.dtype.kind not in "fiub":
                raise InputError(
                    f"{self.group} {t} must be an array of numbers with a row for each of its "
                    f"{self.members}, but has shape {array.shape} and type {array.dtype}"
                )
            if len(array) == 0:
                raise InputError(f"{self.group} {t} is empty: it has no {self.members}")
            if array.shape[1] != self.features:
                raise InputError(
                    f"{self.group} {t} has {array.shape[1]} features, but {self.group} 0 has "
                    f"{self.features}"
                )
        if self.groups:
            check_features(self.features)
        self.size = sum(array.size for array in self.groups)
        #: How many members each group has.
        self.sizes = np.array([len(array) for array in self.groups], dtype=np.int64)
        self.largest = int(self.sizes.max(initial=0))
        self.block = batch_rounds(self.rounds, self.size)
        #: How many rounds of the stream came before these, where they are a batch of it.
        self.before = 0
        self.labels: CheckedLabels | None = None
        self.asked: np.ndarray | None = None
        self._whole = whole

    def with_members(self, whole: np.ndarray, starts: np.ndarray) -> Self:
        """Return groups of the same kind from an array of our own, which needs no checks."""
        made, places = copy.copy(self), starts.tolist()
        made.groups = [whole[a:b] for a, b in itertools.pairwise(places)]
        made.rounds, made.features, made.size = len(made.groups), whole.shape[1], whole.size
        made.sizes = np.diff(starts)
        made.largest, made.before = int(made.sizes.max(initial=0)), 0
        made._whole = whole, starts
        return made

    def arrays(
        self, start: int, stop: int, dtype: npt.DTypeLike = np.float64
    ) -> tuple[np.ndarray, ...]:
        """Return all members of some groups, and where each group starts, for a loop."""
        if self._whole is not None:
            whole, starts = self._whole
            first, last = starts[start], starts[stop]
            return np.ascontiguousarray(whole[first:last], dtype), starts[start : stop + 1] - first
        groups = self.groups[start:stop]
        starts = np.cumsum([0, *map(len, groups)])
        whole = groups[0] if len(groups) == 1 else np.concatenate(groups)
        return np.ascontiguousarray(whole, dtype=dtype), starts

    def loop_labels(self, labels: CheckedLabels) -> np.ndarray:
        """Return labels one after the other, for a loop."""
        return np.concatenate(labels)

    def matrix(self, t: int, intercept: bool) -> np.ndarray:
        """Return one group, contiguous, with a column of ones for an intercept."""
        x = np.ascontiguousarray(self.groups[t], dtype=np.float64)
        return np.column_stack([x, np.ones(len(x))]) if intercept else x

    def row(self, t: int) -> np.ndarray:
        """Return all entries of one group as a vector."""
        return self.matrix(t, False).ravel()

    def first_bad_row(self, dtype: npt.DTypeLike = np.float64) -> int | None:
        """Return the first group with an entry that is not finite, or None."""
        for t in range(self.rounds):
            if not np.isfinite(np.vdot(self.row(t), self.row(t))):
                return t
        return None

    def sample(self, rows: np.ndarray) -> bytes:
        """Return the sizes of some groups and a member of each as bytes, for a digest."""
        groups = [self.groups[t] for t in rows]
        members = (np.asarray(x[len(x) // 2], dtype=np.float64).tobytes() for x in groups)
        return np.array([len(x) for x in groups]).tobytes() + b"".join(members)

    def check_labels(self, labels: CheckedLabels) -> None:
        """Refuse labels of another length than their group."""
        for t, (size, label) in enumerate(zip(self.sizes.tolist(), labels, strict=True)):
            if size != len(label):
                raise InputError(
                    f"{self.group} {t} has {size} {self.members}, but its label has "
                    f"{len(label)} entries"
                )

    @property
    def entries_arrays(self) -> list[np.ndarray]:
        """All entries, in arrays."""
        return self.groups

    def taken(self, index: np.ndarray) -> Self:
        """Return groups by their places: a copy."""
        groups = [np.asarray(self.groups[i], dtype=np.float64) for i in index.tolist()]
        return self.with_members(np.concatenate(groups), np.cumsum([0, *map(len, groups)]))

    def followed_by(self, *then: Self) -> Self:
        """Return these groups, and then others."""
        every = [group for groups in (self, *then) for group in groups.groups]
        made = [np.asarray(group, dtype=np.float64) for group in every]
        return then[-1].with_members(np.concatenate(made), np.cumsum([0, *map(len, made)]))

    def to_arrays(self) -> Saved:
        """Return all groups as plain data and arrays."""
        groups = [np.asarray(group, dtype=np.float64) for group in self.groups]
        return {}, {"inputs": np.concatenate(groups), "lengths": self.sizes}


def batch_rounds(rounds: int, size: int) -> int:
    """Return how many rounds are in a batch: some megabytes of them."""
    return max(1, min(1 << 14, (1 << 22) * rounds // max(1, size)))


def _cut(
    whole: Inputs, starts: npt.ArrayLike
) -> tuple[list[np.ndarray], tuple[np.ndarray, np.ndarray] | None]:
    """Return the groups of one array or CSR matrix, from where each starts to the next.

    Also an array with the places, a copy of our own.
    """
    if hasattr(whole, "tocsr"):
        rows = SparseRows(whole).matrix
        places = places_of(starts, rows.shape[0])
        return [rows[a:b].toarray() for a, b in itertools.pairwise(places)], None
    array = np.asarray(whole)
    places = places_of(starts, len(array))
    groups = [array[a:b] for a, b in itertools.pairwise(places)]
    return groups, (array, np.array(places, dtype=np.int64))


def places_of(starts: npt.ArrayLike, rows: int) -> list[int]:
    """Return where groups start, with the number of rows at the end."""
    places = np.asarray(starts)
    good = places.ndim == 1 and places.size > 0 and places.dtype.kind in "iu"
    if not good or places[0] != 0 or places[-1] != rows or (np.diff(places) < 0).any():
        raise InputError(
            f"groups must start at rising rows from 0, with the number of rows, {rows}, at the "
            f"end; but these are {starts!r}"
        )
    made: list[int] = places.tolist()
    return made
