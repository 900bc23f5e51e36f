"""A summary of a long run, in a bounded number of blocks of rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from driftline.errors import InputError
from driftline.state import archive
from driftline.state.loading import DAMAGE
from driftline.typing import Json

__all__ = ["Journal"]

#: The most blocks by default, and the largest number that can be chosen.
MOST, LARGEST = 2048, 2**20


class Journal:
    """Sums of named columns over blocks of equal length; only the last may be shorter.

    When there are too many blocks, neighbours are merged in pairs: memory is bounded for any run.

    >>> journal = Journal(["loss"], most=4)
    >>> journal.add({"loss": np.arange(10.0)})
    >>> journal.span, journal.sums("loss").tolist(), journal.lengths.tolist()
    (4, [6.0, 22.0, 17.0], [4, 4, 2])
    """

    def __init__(self, names: Sequence[str], most: int = MOST):
        if not 1 <= most <= LARGEST:
            raise InputError(f"a journal has 1 to {LARGEST} blocks at most, not {most}")
        self.names, self.most = list(names), most
        self.span, self.rounds = 1, 0
        self._blocks = np.zeros((0, len(self.names)))

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add rounds, a column for each name."""
        if columns.keys() != set(self.names):
            raise InputError(f"expected {', '.join(self.names)}, but got {', '.join(columns)}")
        values = np.column_stack([columns[name] for name in self.names])
        count = len(values)
        if not count:
            return
        while self.rounds + count > self.most * self.span:
            self._halve()
        block = (self.rounds + np.arange(count)) // self.span
        starts = np.flatnonzero(np.r_[True, block[1:] > block[:-1]])
        sums = np.add.reduceat(values, starts, axis=0)
        if block[0] < len(self._blocks):
            self._blocks[-1] += sums[0]
            sums = sums[1:]
        self._blocks = np.vstack([self._blocks, sums])
        self.rounds += count

    def _halve(self) -> None:
        if len(self._blocks) % 2:
            self._blocks = np.vstack([self._blocks, np.zeros((1, len(self.names)))])
        self._blocks = self._blocks[::2] + self._blocks[1::2]
        self.span *= 2

    @property
    def lengths(self) -> np.ndarray:
        """How many rounds each block has."""
        ends = np.minimum(np.arange(1, len(self._blocks) + 1) * self.span, self.rounds)
        return np.diff(ends, prepend=0)

    @property
    def ends(self) -> np.ndarray:
        """The number of rounds up to the end of each block."""
        return np.cumsum(self.lengths)

    def sums(self, name: str) -> np.ndarray:
        """Return the sums of a column, one per block."""
        return self._blocks[:, self._place(name)].copy()

    def means(self, name: str) -> np.ndarray:
        """Return the means of a column, one per block."""
        return self.sums(name) / self.lengths

    def total(self, name: str) -> float:
        """Return the sum of a column over all rounds."""
        return float(self._blocks[:, self._place(name)].sum())

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise InputError(f"the journal has {', '.join(self.names)}; not {name!r}")
        return self.names.index(name)

    def __repr__(self) -> str:
        """Name the rounds and the blocks."""
        return f"Journal({self.rounds} rounds in {len(self._blocks)} blocks of {self.span})"

    def save(self, path: str | Path) -> Path:
        """Write the journal to one file of plain data."""
        about, blocks = self.to_saved()
        return archive.write(path, about, {"blocks": blocks})

    def to_saved(self) -> tuple[Json, np.ndarray]:
        """Return all of the journal as plain data and an array."""
        about = {"kind": "Journal", "names": self.names, "most": self.most}
        return about | {"span": self.span, "rounds": self.rounds}, self._blocks

    @classmethod
    def load(cls, path: str | Path) -> Journal:
        """Read what :meth:`save` wrote, or refuse the file."""
        about, arrays = archive.read(path)
        try:
            return cls.from_saved(about, arrays["blocks"])
        except DAMAGE as error:
            raise InputError(f"{path} is no journal, or damaged: {error}") from error

    @classmethod
    def from_saved(cls, about: Json, blocks: np.ndarray) -> Journal:
        """Return the journal from what :meth:`to_saved` returned."""
        made = cls([str(name) for name in about["names"]], int(about["most"]))
        made.span, made.rounds = int(about["span"]), int(about["rounds"])
        blocks = np.array(blocks, dtype=np.float64)
        count = -(-made.rounds // made.span)
        good = about.get("kind") == "Journal" and 0 < made.span <= max(2 * made.rounds, 1)
        good = good and len(set(made.names)) == len(made.names)
        if not good or blocks.shape != (count, len(made.names)) or count > made.most:
            raise InputError(f"{count} blocks cannot have the shape {blocks.shape}")
        made._blocks = blocks
        return made
