"""The columns that are predicted, as a task takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from driftline.app.tables.piece import Piece
from driftline.app.tables.values import FLAGS, is_missing, number
from driftline.errors import InputError
from driftline.tasks import NDCG, Multiclass, Multilabel, Ordinal, Task
from driftline.typing import CheckedLabels, Json

__all__ = ["KINDS", "MOST_CLASSES", "Labels"]

KINDS = ("classes", "tags", "levels", "ranking")
#: A column with more classes is hardly one of classes.
MOST_CLASSES = 1000


class Labels:
    """What is predicted, by the names of its columns.

    Parameters
    ----------
    kind
        ``classes``: one of several, new ones may come at any time. ``tags``: a column of 0 or 1
        for each. ``levels``: one of several in order. ``ranking``: a grade of every document.
    names
        Of the columns: one, or for tags one each.
    values
        The classes seen so far or the levels from the lowest to the highest, as written.
    whole
        Whether values are whole numbers: then 1.0 is 1.
    highest
        The highest grade of a ranking.
    """

    def __init__(
        self,
        kind: str,
        names: Sequence[str],
        values: Sequence[str] = (),
        whole: bool = False,
        highest: int = 4,
    ):
        if kind not in KINDS:
            raise InputError(f"a task is one of {', '.join(KINDS)}; not {kind!r}")
        if not names or (len(names) > 1 and kind != "tags"):
            raise InputError(f"{kind} need one label column, not {len(names)}")
        self.kind, self.names, self.values = kind, list(names), list(values)
        self.whole, self.highest = whole, highest
        self._codes = {value: code for code, value in enumerate(self.values)}
        self._known: dict[str, int] = {}  # what was met before, as written

    @property
    def task(self) -> Task:
        """The task. There are always two classes, though the second may have no name yet."""
        if self.kind == "classes":
            return Multiclass(max(2, len(self.values)))
        if self.kind == "tags":
            return Multilabel(len(self.names))
        return Ordinal(len(self.values)) if self.kind == "levels" else NDCG(self.highest)

    @property
    def outputs(self) -> int:
        """How many scores an input has."""
        return max(2, len(self.names), len(self.values))

    def encode(self, piece: Piece, positions: Mapping[str, int]) -> np.ndarray:
        """Return labels as the task takes them; classes that are new get the next numbers."""
        columns = [piece.texts(positions[name]) for name in self.names]
        code = {"tags": self._tag, "ranking": self._grade}.get(self.kind, self._class)
        known = self._known
        made, count = np.empty((len(piece), len(columns)), dtype=np.int64), len(self.values)
        for j, texts in enumerate(columns):
            codes = [known.get(text, -1) for text in texts]
            if -1 in codes:
                try:
                    for row, text in enumerate(texts):
                        if text not in known:
                            known[text] = code(piece, row, j, text)
                        codes[row] = known[text]
                except InputError:
                    self.forget(count)
                    raise
            made[:, j] = codes
        return made if self.kind == "tags" else made[:, 0]

    def forget(self, count: int) -> None:
        """Know only the first classes."""
        del self.values[count:]
        self._codes = {value: code for code, value in enumerate(self.values)}
        self._known = {}

    def canonical(self, text: str) -> str:
        """Return a label as it is known: whole numbers without a fraction."""
        text = text.strip()
        if self.whole:
            value = number(text)
            if value is not None and abs(value) < 2**53 and value == int(value):
                return str(int(value))
        return text

    def _class(self, piece: Piece, row: int, column: int, text: str) -> int:
        value = self.canonical(text)
        self._present(piece, row, column, text)
        if value not in self._codes:
            if self.kind == "levels":
                raise piece.error(
                    row,
                    self.names[0],
                    f"{value[:40]!r} is none of the levels {', '.join(self.values)}: name all "
                    "levels, from the lowest to the highest, by --levels",
                )
            if len(self.values) >= MOST_CLASSES:
                raise piece.error(
                    row,
                    self.names[0],
                    f"more than {MOST_CLASSES} different labels: is it the right column? Name "
                    "another by --label",
                )
            self._codes[value] = len(self.values)
            self.values.append(value)
        return self._codes[value]

    def _tag(self, piece: Piece, row: int, column: int, text: str) -> int:
        self._present(piece, row, column, text)
        value = FLAGS.get(text.strip().lower(), number(text))
        if value not in (0.0, 1.0):
            raise piece.error(
                row, self.names[column], f"a tag is 0 or 1, true or false; but saw {text[:40]!r}"
            )
        return int(value)

    def _grade(self, piece: Piece, row: int, column: int, text: str) -> int:
        self._present(piece, row, column, text)
        value = number(text)
        if value is None or not 0 <= value <= self.highest or value != int(value):
            raise piece.error(
                row,
                self.names[0],
                f"expected a grade, a whole number from 0 to {self.highest}, but saw "
                f"{text[:40]!r}: say the highest one by --highest-grade",
            )
        return int(value)

    def _present(self, piece: Piece, row: int, column: int, text: str) -> None:
        if is_missing(text) and text.strip().lower() != "none":  # which may well be a class
            raise piece.error(
                row,
                self.names[column],
                "the label is missing: fill it in, or leave the row out; driftline predict takes "
                f"rows without labels if the column is left out by --ignore {self.names[column]}",
            )

    def shown(self, codes: CheckedLabels) -> list[str]:
        """Return labels or predictions as texts, for people and files."""
        if self.kind == "tags":
            return [";".join(n for n, c in zip(self.names, row, strict=True) if c) for row in codes]
        if self.kind == "ranking":
            return [" ".join(str(rank) for rank in row if rank >= 0) for row in codes]
        names = self.values + ["(other)"] * (2 - len(self.values))
        return [names[code] for code in codes]

    # -- saving

    def config(self) -> Json:
        """Return all as plain data."""
        names = ("kind", "names", "values", "whole", "highest")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config: Json) -> Labels:
        """Return what :meth:`config` was asked of."""
        names, values = list(map(str, config["names"])), list(map(str, config["values"]))
        return cls(config["kind"], names, values, bool(config["whole"]), int(config["highest"]))
