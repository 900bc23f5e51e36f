"""What every codec of labels offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from driftline.app.tables.options import Options
from driftline.app.tables.piece import Piece
from driftline.app.tables.table_error import TableError
from driftline.app.tables.values import is_missing, number
from driftline.errors import InputError
from driftline.tasks import Task
from driftline.typing import CheckedLabels, Json

__all__ = ["FirstLabels", "LabelCodec", "canonical", "check_length", "few", "is_label"]


#: The most characters of a label.
LONGEST = 10_000
#: How many texts are known as written: one class may be written in any number of ways.
KNOWN = 2_000


class FirstLabels:
    """The label columns of a table's first rows, from which a codec is guessed.

    ``texts`` are the labels that are there, of the first column.
    """

    def __init__(self, table: str, names: Sequence[str], texts: Sequence[str], rows: int):
        self.table, self.names, self.rows = table, list(names), rows
        self.texts = [text.strip() for text in texts if is_label(text)]
        try:
            check_length(max(self.texts, key=len, default=""))
        except InputError as error:
            raise InputError(f"{table}: column {self.names[0]!r}: {error}") from error

    @cached_property
    def numbers(self) -> list[float | None]:
        """The numbers that labels stand for."""
        return [number(text) for text in self.texts]

    @property
    def numeric(self) -> bool:
        """Whether all labels are numbers."""
        return bool(self.texts) and all(value is not None for value in self.numbers)

    @property
    def whole(self) -> bool:
        """Whether all labels are whole numbers."""
        return bool(self.texts) and all(_is_whole(value) for value in self.numbers)

    @cached_property
    def distinct(self) -> list[str]:
        """Different labels, in the order they came in."""
        return list(dict.fromkeys(self.texts))


class LabelCodec(ABC):
    """The label columns of a table: texts in, labels of a task out, and predictions as texts.

    A codec says of its kind how losses are told to people; all else follows from its columns.
    """

    #: What ``--task`` calls it.
    kind: ClassVar[str]
    #: What a mean loss is called on screens, and its total in reports.
    loss_name: str
    unit: str = "loss"
    #: Whether a sum of losses says something, beside their mean.
    counts: ClassVar[bool] = False
    #: Whether labels that were never seen before may come at any time.
    grows: ClassVar[bool] = False
    #: Whether a label is one of several that may be balanced by their frequencies.
    balances: ClassVar[bool] = False
    #: Whether there may be no answer, at a cost.
    abstains: ClassVar[bool] = False
    #: Whether predictions are shown as numbers alone.
    numeric: ClassVar[bool] = False

    #: Names of classes or levels, as written; empty for other kinds.
    values: Sequence[str] = ()

    def __init__(self, names: Sequence[str]):
        if not names:
            raise InputError(f"{self.kind} need a label column")
        self.names = list(names)
        self._known: dict[str, int] = {}  # codes of texts met before, as written

    # -- what every kind says

    @classmethod
    @abstractmethod
    def guess(cls, first: FirstLabels, options: Options) -> Self:
        """Return a codec for these labels, or refuse them with what to do."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """The task that labels are for."""

    @abstractmethod
    def code(self, text: str) -> int:
        """Return what the task takes for a label that is there, or say why it is none."""

    @abstractmethod
    def show(self, labels: CheckedLabels) -> list[str]:
        """Return labels or predictions as texts, for people and files."""

    def place(self, text: str) -> int:
        """Return the place of a label among those that are known, -1 for any other text."""
        return -1

    def named(self, labels: CheckedLabels) -> list[Any]:
        """Return labels or predictions by name, for programs."""
        return list(self.show(labels))

    def cells(self, label: Any) -> Sequence[Any]:
        """Return what the label's columns hold for a label that a program gives."""
        return [label]

    @abstractmethod
    def config(self) -> Json:
        """Return all as plain data."""

    @classmethod
    @abstractmethod
    def from_config(cls, config: Json) -> Self:
        """Return the codec that :meth:`config` was asked of."""

    # -- what follows

    @property
    def outcomes(self) -> Sequence[str]:
        """Names of what is predicted: classes, levels or tags."""
        return self.values

    @property
    def outputs(self) -> int:
        """How many scores an input has."""
        return max(2, len(self.outcomes))

    @property
    def alike(self) -> list[str]:
        """Remarks on names that differ only in case or blanks, such as yes and Yes."""
        groups: dict[str, list[str]] = {}
        for value in self.values:
            groups.setdefault("".join(value.casefold().split()), []).append(value)
        return [
            f"labels {' and '.join(map(repr, group))} differ only in case or blanks, and are "
            "different classes: correct the file if they are meant to be one"
            for group in groups.values()
            if len(group) > 1
        ]

    def encode(self, piece: Piece, positions: Mapping[str, int]) -> np.ndarray:
        """Return the labels of all rows as the task takes them; if one is refused, none is new."""
        made = np.empty((len(piece), len(self.names)), dtype=np.int64)
        known, before = self._known, len(self.values)
        for j, name in enumerate(self.names):
            texts = piece.texts(positions[name])
            codes = [known.get(text, -1) for text in texts]
            if -1 in codes:
                try:
                    for row, text in enumerate(texts):
                        if text not in known:
                            code = self._code_of(piece, row, name, text)
                            if len(known) >= KNOWN:
                                known.clear()
                            known[text] = code
                        codes[row] = known[text]
                except InputError:
                    self.forget(before)
                    raise
            made[:, j] = codes
        return self._joined(made)

    def known_codes(self, labels: Sequence[Any]) -> np.ndarray | None:
        """Return labels of one column, if all are texts that were met before; else None."""
        if len(self.names) > 1 or type(self).cells is not LabelCodec.cells:
            return None
        known = self._known
        codes = [known.get(label, -1) if type(label) is str else -1 for label in labels]
        if -1 in codes:
            return None
        return self._joined(np.array(codes, dtype=np.int64)[:, np.newaxis])

    def forget(self, count: int) -> None:
        """Know only the first ``count`` values: a rollback, where rows were refused."""
        self._known = {}

    def _joined(self, codes: np.ndarray) -> np.ndarray:
        """Return labels from the codes of their columns."""
        return codes[:, 0]

    def missing(self, piece: Piece, row: int, name: str) -> TableError:
        """Return the error of a label that is missing."""
        advice = (
            "fill it in, or say --unlabelled skip to leave such rows out, or --unlabelled predict "
            "to predict them without learning"
        )
        error = piece.error(row, name, "the label is missing", advice)
        return TableError(str(error), unlabelled="skip")

    def _code_of(self, piece: Piece, row: int, name: str, text: str) -> int:
        if not is_label(text):
            raise self.missing(piece, row, name)
        try:
            check_length(text)
            return self.code(text)
        except InputError as error:
            raise piece.error(row, name, str(error)) from error


def is_label(text: str) -> bool:
    """Say whether there is a label: ``none`` is one, since it may well be a class.

    >>> [is_label(text) for text in ("", "NA", "None", "0")]
    [False, False, True, True]
    """
    return not is_missing(text) or text.strip().lower() == "none"


def canonical(text: str, whole: bool) -> str:
    """Return a label as it is known: where labels are whole numbers, without a fraction.

    >>> canonical(" 1.0 ", whole=True), canonical("1.0", whole=False), canonical("a", whole=True)
    ('1', '1.0', 'a')
    """
    text = text.strip()
    value = number(text) if whole else None
    return str(int(value)) if value is not None and _is_whole(value) else text


def check_length(text: str) -> None:
    """Refuse a label that is too long: it would come back with every answer."""
    if len(text) > LONGEST:
        raise InputError(
            f"a label has {LONGEST:,} characters at most, but this one has {len(text):,}: is it "
            "the right column?"
        )


def few(names: Sequence[str]) -> str:
    """Return the first names of many, for a message.

    >>> few(["low", "high"]), few(list("abcdefghij"))
    ('low, high', 'a, b, c, d, e, f, g, h, ...')
    """
    return ", ".join([name[:40] for name in names[:8]] + ["..."] * (len(names) > 8))


def _is_whole(value: float | None) -> bool:
    return value is not None and abs(value) < 2**53 and value == int(value)
