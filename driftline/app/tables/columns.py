"""The columns that inputs are made of, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftline.app.tables.piece import Piece
from driftline.app.tables.table_error import TableError
from driftline.app.tables.values import FLAGS, amount, decimal_comma, is_missing, number
from driftline.errors import InputError
from driftline.inputs import FILLS, running_sums
from driftline.typing import Json

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Column", "Columns", "Memory", "ReadRow"]

KINDS = ("number", "amount", "flag", "text")


class Column(NamedTuple):
    """A column by name: a ``number``, an ``amount``, a ``flag`` (true or false), or a ``text``.

    An amount is a number with a unit, such as $1,200 or 12%. A text becomes its place among the
    ``categories``, or their number if it is another one, or -1 if it is missing.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()


class ReadRow(NamedTuple):
    """A row whose cells were read by some columns: a number for each, NaN if missing."""

    row: Any
    columns: Columns
    values: np.ndarray


class Memory(NamedTuple):
    """The state of the columns: sums and counts of the values of each, up to some row."""

    sums: np.ndarray
    counts: np.ndarray


class Columns:
    """Columns that become numbers, one each, found by name whatever their order.

    Rows are encoded some time before they are learned from, and rows that were not learned from
    must not be in the saved state: :meth:`memory` is the state after a row, and :attr:`learned` may
    be set to it, for :meth:`config`.

    Parameters
    ----------
    columns
        The columns, in the order of the features.
    missing
        How missing numbers are treated: ``refuse``, ``zero``, or ``mean``, the mean of all values
        in the rows before (0 before the first). A missing text is -1 unless it is refused.
    decimal
        The decimal sign.
    sparse
        Whether features are a CSR matrix.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        missing: str = "refuse",
        decimal: str = ".",
        sparse: bool = False,
    ):
        if missing not in FILLS:
            raise InputError(f"missing values are {', '.join(FILLS)}; not {missing!r}")
        if decimal not in (".", ","):
            raise InputError(
                f"a number has a point or a comma before its fraction, not {decimal!r}"
            )
        self.columns, self.missing, self.decimal = list(columns), missing, decimal
        self.sparse = sparse
        self.width = len(self.columns)
        self.sums, self.counts = np.zeros(self.width), np.zeros(self.width)
        self.learned: Memory | None = None
        self._running: Memory | None = None  # after every row of the last piece
        self._plain = [(c, at) for at, c in enumerate(self.columns) if c.kind == "number"]
        self._texts = np.array([column.kind == "text" for column in self.columns], dtype=bool)
        self._codes = [{text: i for i, text in enumerate(c.categories)} for c in self.columns]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def categories(self) -> dict[int, int]:
        """How many categories each column of texts has."""
        return {place: len(texts) for place, texts in self.texts.items()}

    @property
    def texts(self) -> dict[int, tuple[str, ...]]:
        """The categories of each column of texts."""
        every = enumerate(self.columns)
        return {place: c.categories for place, c in every if c.kind == "text"}

    @property
    def numbers(self) -> dict[str, int]:
        """The place of each column of numbers among the features."""
        return {column.name: place for column, place in self._plain}

    def encode(
        self, piece: Piece, positions: Mapping[str, int], learning: bool | np.ndarray = True
    ) -> np.ndarray | csr_array:
        """Return a number for each column, one row each.

        Values of these rows count in the means of later ones if ``learning``, which may be said for
        every row.
        """
        if not self.sparse:
            return self.filled(self.read(piece, positions), learning)
        from scipy.sparse import csr_array

        made = None
        if len(self._plain) == len(self.columns) and self.decimal == "." and self.missing != "mean":
            made = piece.entries([positions[c.name] for c, _ in self._plain])
        if made is None or not np.isfinite(made.data).all():
            made = csr_array(self.filled(self.read(piece, positions), learning))
        return made

    def read(self, piece: Piece, positions: Mapping[str, int]) -> np.ndarray:
        """Return numbers, one row each, with NaN for what is missing: no state matters."""
        out = np.zeros((len(piece), self.width))
        fast = None
        if self._plain and self.decimal == ".":
            fast = piece.numbers([positions[c.name] for c, _ in self._plain])
        if fast is not None and np.isfinite(fast).all():
            out[:, [at for _, at in self._plain]] = fast
        else:
            for column, at in self._plain:
                texts = piece.texts(positions[column.name])
                out[:, at] = [self._number(piece, i, column, t) for i, t in enumerate(texts)]
        for at, (column, codes) in enumerate(zip(self.columns, self._codes, strict=True)):
            if column.kind != "number":
                texts = piece.texts(positions[column.name])
                out[:, at] = self._cells(piece, column, texts, codes)
        return out

    def _number(self, piece: Piece, row: int, column: Column, text: str) -> float:
        value = number(text, self.decimal)
        if value is not None and np.isfinite(value):
            return value
        if is_missing(text):
            return self._absent(piece, row, column)
        if value is not None:
            said = f"expected a number, but saw {text.strip()[:40]!r}"
            return self._absent(piece, row, column, said)
        hint = f"mend it, or leave the column out by --ignore {column.name}"
        if decimal_comma(text):
            hint = "if that is a decimal comma, say --decimal ,"
        raise piece.error(row, column.name, f"expected a number, but saw {text[:40]!r}", hint)

    def _absent(
        self, piece: Piece, row: int, column: Column, said: str = "the value is missing"
    ) -> float:
        """Return NaN for a value to be filled in, or refuse it."""
        if self.missing == "refuse":
            advice = (
                "say --missing zero or --missing mean to fill it in, or "
                f"--ignore {column.name} to leave the column out"
            )
            raise TableError(str(piece.error(row, column.name, said, advice)), missing="mean")
        return np.nan

    def _cells(
        self, piece: Piece, column: Column, texts: Sequence[str], codes: dict[str, int]
    ) -> list[float]:
        """Return the numbers of flags, amounts or texts."""
        made = list[float]()
        for row, text in enumerate(texts):
            text = text.strip()
            if column.kind == "text" and (code := codes.get(text)) is not None:
                made.append(code)
            elif is_missing(text):
                made.append(self._absent(piece, row, column))
            elif column.kind == "text":
                made.append(len(column.categories))
            elif (value := self._value(column.kind, text)) is not None:
                made.append(value)
            else:
                expected = "true or false" if column.kind == "flag" else "an amount"
                raise piece.error(row, column.name, f"expected {expected}, but saw {text[:40]!r}")
        return made

    def _value(self, kind: str, text: str) -> float | None:
        """Return the number of a flag or an amount, None if it is none."""
        value = amount(text, self.decimal) if kind == "amount" else FLAGS.get(text.lower())
        return None if value is None or not np.isfinite(value) else value

    def filled(self, out: np.ndarray, learning: bool | np.ndarray) -> np.ndarray:
        """Return numbers that were read, with missing ones filled in.

        Means are kept whatever becomes of missing values, since a later command may ask for them.
        """
        there = ~np.isnan(out)
        sums, counts = self.sums, self.counts
        if learning is not False:
            counted = there if learning is True else there & np.reshape(learning, (-1, 1))
            sums, counts = running_sums(out, counted, sums, counts)
            self.sums, self.counts = sums[-1], counts[-1]
            self._running = Memory(sums, counts)
            sums, counts = sums[:-1], counts[:-1]
        if there.all():
            return out
        mean = self.missing == "mean"
        rest = sums / np.maximum(counts, 1.0) if mean else 0.0
        return np.where(there, out, np.where(self._texts, -1.0, rest))

    def fill_by(self, missing: str) -> None:
        """Treat missing values in another way from here on."""
        if missing == "mean" and not self.counts.any():
            raise InputError(
                "the model has no means of its columns, since its rows were sparse: say "
                "--missing zero"
            )
        self.missing = missing

    def memory(self, rows: int | None = None) -> Memory | None:
        """Return the state after ``rows`` rows of the last piece, None if there is none."""
        if self._running is None:
            return None
        place = -1 if rows is None else rows
        return Memory(self._running.sums[place].copy(), self._running.counts[place].copy())

    # -- saving

    def config(self) -> Json:
        """Return all as plain data."""
        sums, counts = self.learned or (self.sums, self.counts)
        return {
            "columns": [[c.name, c.kind, list(c.categories)] for c in self.columns],
            "missing": self.missing,
            "decimal": self.decimal,
            "sparse": self.sparse,
            "sums": sums.tolist(),
            "counts": counts.tolist(),
        }

    @classmethod
    def from_config(cls, config: Json) -> Columns:
        """Return the object from what :meth:`config` returned."""
        columns = [Column(str(n), str(k), tuple(map(str, c))) for n, k, c in config["columns"]]
        if any(column.kind not in KINDS for column in columns):
            raise InputError(f"a column is one of {', '.join(KINDS)}")
        made = cls(columns, config["missing"], config["decimal"], bool(config["sparse"]))
        sums, counts = np.array(config["sums"], float), np.array(config["counts"], float)
        if not sums.shape == counts.shape == (made.width,) or not np.isfinite(sums + counts).all():
            raise InputError(f"{made.width} features need as many sums and counts")
        made.sums, made.counts = sums, counts
        return made
