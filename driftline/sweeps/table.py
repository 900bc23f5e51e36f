"""What a sweep has found, a row for each learner, stream and seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self, overload

import numpy as np

from driftline.errors import InputError

__all__ = ["SweepRow", "SweepTable"]

#: Columns by which the best learner may be chosen.
LOSSES = ("target_loss", "risk", "surrogate_loss")


class SweepRow(NamedTuple):
    """The totals of one learner over one stream by one seed.

    ``target_loss`` is that of the predictions as they were drawn, ``risk`` their expectation, and
    ``surrogate_loss`` is nan where a learner has none. ``seconds`` is the time that it took. Where
    a stream was refused, ``error`` says why, there are 0 rounds, and all totals are nan.
    """

    learner: str
    stream: str
    seed: int
    rounds: int = 0
    target_loss: float = math.nan
    risk: float = math.nan
    surrogate_loss: float = math.nan
    seconds: float = math.nan
    error: str = ""

    def __eq__(self, other: object) -> bool:
        """Compare all columns; nan equals nan."""
        if not isinstance(other, SweepRow):
            return NotImplemented
        pairs = zip(self, other, strict=True)
        return all(a == b or (a != a and b != b) for a, b in pairs)

    def __hash__(self) -> int:
        """Hash what says which row it is."""
        return hash(self[:3])


class SweepTable(Sequence[SweepRow]):
    """Rows in the order of learners, streams and seeds.

    Columns are attributes, as arrays; ``str`` makes a text of aligned columns.

    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=500, flips=1, seed=0)
    >>> loss = dl.losses.Logistic(stream.task)
    >>> learners = dl.sweeps.grid(
    ...     lambda d: dl.OGD(loss, domain=dl.domains.Ball(d)), d=[0.1, 20.0]
    ... )
    >>> table = dl.sweep(learners, {"flips": stream}, seeds=range(3))
    >>> len(table), table.best().learner, table.risk.shape
    (6, 'd=20', (6,))
    """

    def __init__(self, rows: Iterable[SweepRow]):
        self.rows = tuple(rows)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the file of a sweep, rows in the order in which they were finished."""
        from driftline.sweeps.file import read_rows

        return cls(read_rows(path))

    @overload
    def __getitem__(self, index: int) -> SweepRow: ...

    @overload
    def __getitem__(self, index: slice) -> SweepTable: ...

    def __getitem__(self, index: int | slice) -> SweepRow | SweepTable:
        """Return a row, or a table of some."""
        found = self.rows[index]
        return found if isinstance(found, SweepRow) else SweepTable(found)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[SweepRow]:
        """Iterate over the rows."""
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        """Compare all rows."""
        return self.rows == other.rows if isinstance(other, SweepTable) else NotImplemented

    def __hash__(self) -> int:
        """Hash the rows."""
        return hash(self.rows)

    def __getattr__(self, name: str) -> np.ndarray:
        """Return a column."""
        if name not in SweepRow._fields:
            raise AttributeError(f"a table of a sweep has no column {name!r}")
        return self.to_dict()[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SweepRow._fields]

    def to_dict(self) -> dict[str, np.ndarray]:
        """Return all columns by name: what ``pandas.DataFrame`` takes."""
        kinds = (object, object, np.int64, np.int64, *[np.float64] * 4, object)
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(kinds)
        pairs = zip(columns, kinds, strict=True)
        arrays = [np.array(column, dtype=kind) for column, kind in pairs]
        return dict(zip(SweepRow._fields, arrays, strict=True))

    def best(self, by: str = "risk", *, stream: str | None = None) -> SweepRow:
        """Return the first row of the learner with the least mean loss over streams and seeds.

        Parameters
        ----------
        by
            The column that is to be small: ``risk``, ``target_loss`` or ``surrogate_loss``.
        stream
            Only this stream. Default: all, each with the weight of its rounds. Learners that did
            not play all of them are left out, unless none did.
        """
        if by not in LOSSES:
            raise InputError(f"expected one of {', '.join(LOSSES)}, but got {by!r:.80}")
        if stream is not None and stream not in {row.stream for row in self}:
            raise InputError(f"there is no stream {stream!r:.80} in the table")
        chosen: dict[str, list[SweepRow]] = {}
        for row in self:
            if stream in (None, row.stream):
                chosen.setdefault(row.learner, []).append(row)
        good = {
            n: [r for r in rows if not math.isnan(getattr(r, by))] for n, rows in chosen.items()
        }
        most = max(map(len, good.values()), default=0)
        if most == 0:
            raise InputError(f"no learner has played to its end with a {by}: see the errors")
        means = {
            name: sum(getattr(row, by) for row in rows) / sum(row.rounds for row in rows)
            for name, rows in good.items()
            if len(rows) == most
        }
        return good[min(means, key=means.__getitem__)][0]

    def __str__(self) -> str:
        """Return a text of aligned columns."""
        names = [name for name in SweepRow._fields if name != "error" or any(self.error)]
        lines = [names, *([_cell(row, name) for name in names] for row in self)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        left = {"learner", "stream", "error"}
        return "\n".join(
            "  ".join(
                cell.ljust(width) if name in left else cell.rjust(width)
                for name, cell, width in zip(names, line, widths, strict=True)
            ).rstrip()
            for line in lines
        )

    def __repr__(self) -> str:
        """Say how large the table is."""
        failed = sum(bool(row.error) for row in self)
        more = f", {failed} with errors" if failed else ""
        return f"SweepTable({len(self)} rows{more})"


def _cell(row: SweepRow, name: str) -> str:
    value = getattr(row, name)
    if name == "seconds":
        return "" if math.isnan(value) else f"{value:.3g}"
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value).replace("\n", " ")
