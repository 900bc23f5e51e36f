"""From the rows of a table to inputs and labels."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from driftline.app.tables.columns import Columns
from driftline.app.tables.given import GivenRows
from driftline.app.tables.labels import LabelCodec, codec_from_config
from driftline.app.tables.labels.codec import is_label
from driftline.app.tables.piece import Piece, Table
from driftline.app.tables.values import amount, is_missing
from driftline.delays import MOST as MOST_DELAY
from driftline.errors import InputError
from driftline.learner import LEAST_WEIGHT, MOST_WEIGHT
from driftline.typing import Inputs, Json

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Batch", "Encoder", "close_to", "matching"]

#: The most characters that are kept of a time.
LONGEST_TIME = 40
#: How many names are compared with one that is not known, and how many characters of each:
#: the spelling of two long names takes milliseconds to compare.
COMPARED, LONGEST = 200, 40


class Batch(NamedTuple):
    """Inputs and labels of some rows; labels are None where there are none.

    ``queries`` are the texts that say which documents belong together, None without a ranking;
    ``unlabelled`` is which rows have no label, None if all have one. ``times`` are the texts of the
    column of times, and ``weights`` the numbers of that of weights; None if there is none.
    ``delays`` say after how many more rows each label comes, negative for never. ``keys`` say whose
    each row is; None without keys.
    """

    inputs: Inputs
    labels: np.ndarray | None
    piece: Piece
    queries: Sequence[str] | None = None
    unlabelled: np.ndarray | None = None
    times: Sequence[str] | None = None
    weights: np.ndarray | None = None
    delays: np.ndarray | None = None
    keys: Sequence[str] | None = None


class Encoder:
    """Which columns are inputs and which are labels, by name; saved with a model as plain data.

    Parameters
    ----------
    columns
        The inputs; or, for rows without columns, how many features they have.
    labels
        What is predicted.
    query
        The column that says which documents belong together, for rankings.
    ignored
        Columns that are left out.
    time
        The one of these that says when a row was; tables may do without it.
    weight
        The column that says how often a row counts when it is learned from.
    balanced
        Whether rows count by how rare their class has been so far.
    delay
        The column that says after how many more rows the label of a row comes.
    key
        The column that says whose a row is, where every key has a learner of its own.
    champion
        The column of a model's predictions, by the names of labels: in the first value of an input
        is the place of the label plus 1, or 0 where there is none that is known.
    """

    def __init__(
        self,
        columns: Columns | int,
        labels: LabelCodec,
        query: str | None = None,
        ignored: Sequence[str] = (),
        time: str | None = None,
        weight: str | None = None,
        balanced: bool = False,
        delay: str | None = None,
        key: str | None = None,
        champion: str | None = None,
    ):
        self.columns, self.labels, self.query = columns, labels, query
        self.ignored, self.time = list(ignored), time
        self.weight, self.balanced, self.delay, self.key = weight, balanced, delay, key
        self.champion = champion

    @property
    def features(self) -> int:
        """How many features an input has, without the champion's prediction."""
        return self.columns if isinstance(self.columns, int) else self.columns.width

    @property
    def sparse(self) -> bool:
        """Whether inputs are sparse rows."""
        return True if isinstance(self.columns, int) else self.columns.sparse

    @property
    def feature_names(self) -> list[str]:
        """Names of all numbers of an input."""
        if isinstance(self.columns, int):
            return [f"feature {j}" for j in range(self.columns)]
        made = self.columns.names
        return made if self.champion is None else [self.champion, *made]

    @property
    def texts(self) -> dict[int, tuple[str, ...]]:
        """The texts whose places numbers of an input are, by the number of the feature."""
        made = {} if isinstance(self.columns, int) else self.columns.texts
        return {place + (self.champion is not None): texts for place, texts in made.items()}

    @property
    def categories(self) -> dict[int, int]:
        """Which numbers of an input are places of texts, and how many texts are known of each."""
        return {place: len(texts) for place, texts in self.texts.items()}

    def bind(
        self,
        table: Table | GivenRows,
        *,
        ignore: Sequence[str] = (),
        labelled: bool | None = True,
        learning: bool = True,
        gaps: bool = False,
    ) -> Bound:
        """Find the columns in a table; ``labelled`` is None if labels are optional.

        Columns that the encoder does not use must match a name or a pattern in ``ignore``. Unless
        ``learning``, rows change no state. With ``gaps``, single rows may have no label.
        """
        have = {name: place for place, name in enumerate(table.columns)}
        out = {name for pattern in ignore for name in matching(pattern, have)}
        if isinstance(self.columns, int) != (table.width is not None):
            kinds = ("named columns", "index:value pairs")
            sparse = table.width is not None
            raise InputError(
                f"{table.name} has {kinds[sparse]}, but the model was learned from "
                f"{kinds[not sparse]}"
            )
        inputs = [] if isinstance(self.columns, int) else self.columns.names
        if labelled is None:
            labelled = all(name in have and name not in out for name in self.labels.names)
        query = [name for name in (self.query, self.key, self.champion) if name is not None]
        learned = [self.weight, self.delay] if labelled and learning else []
        more = [name for name in learned if name is not None]
        wanted = [*inputs, *(self.labels.names if labelled else ()), *query, *more]
        self._refuse(table, have, wanted, out)
        if self.time is not None and self.time in have and self.time not in out:
            wanted.append(self.time)
        return Bound(self, {name: have[name] for name in wanted}, labelled, learning, gaps)

    def _refuse(
        self, table: Table | GivenRows, have: Collection[str], wanted: list[str], out: set[str]
    ) -> None:
        """Refuse a table without the columns that are wanted, or with others not left out."""
        used = [name for name in wanted if name in out]
        if used:
            raise InputError(
                f"--ignore names {_few(used)}, which the model needs: only columns that it was not "
                "learned from can be left out"
            )
        for name in wanted:
            if name not in have:
                raise InputError(
                    f"{table.name} has no column {name!r}, which the model knows"
                    f"{close_to(name, table.columns)}"
                )
        known = {*wanted, *self.labels.names, *self.ignored, *out, self.weight, self.delay}
        more = [name for name in have if name not in known]
        if more and table.width is None:
            raise InputError(
                f"{table.name} has columns that the model does not know, {_few(more)}: leave them "
                f"out by --ignore {_few(more, ',')}"
            )

    def config(self) -> Json:
        """Return all as plain data."""
        columns = self.columns if isinstance(self.columns, int) else self.columns.config()
        return {
            "columns": columns,
            "labels": self.labels.config(),
            "query": self.query,
            "ignored": self.ignored,
            "time": self.time,
            "weight": self.weight,
            "balanced": self.balanced,
            "delay": self.delay,
            "key": self.key,
            "champion": self.champion,
        }

    @classmethod
    def from_config(cls, config: Json) -> Encoder:
        """Return the object from what :meth:`config` returned."""
        columns, query = config["columns"], config["query"]
        made = columns if isinstance(columns, int) else Columns.from_config(columns)
        labels = codec_from_config(config["labels"])
        ignored = [str(name) for name in config["ignored"]]
        names = ("time", "weight", "delay", "key", "champion")
        texts = (query, *(config[name] for name in names))
        query, time, weight, *rest = (None if name is None else str(name) for name in texts)
        balanced = config["balanced"] is True
        return cls(made, labels, query, ignored, time, weight, balanced, *rest)


class Bound(NamedTuple):
    """An encoder that has found its columns in a table."""

    encoder: Encoder
    positions: Mapping[str, int]
    labelled: bool
    learning: bool = True
    gaps: bool = False

    def batch(self, piece: Piece, filled: bool = True) -> Batch:
        """Return inputs and labels of some rows; if these are refused, no state changes.

        Unless ``filled``, inputs are those of :meth:`Columns.read`, and columns learn nothing.
        """
        columns, labels, query = self.encoder.columns, self.encoder.labels, self.encoder.query
        known, absent = len(labels.values), self.unlabelled(piece) if self.gaps else None
        made = self._labels(piece, absent) if self.labelled else None
        learning = ~absent if self.learning and absent is not None else self.learning
        try:
            weights, delays = self._weights(piece, absent), self._delays(piece, absent)
            keys = self._keys(piece)
            if isinstance(columns, int):
                inputs: Inputs = _widened(piece, columns)
            elif filled:
                inputs = columns.encode(piece, self.positions, learning)
            else:
                inputs = columns.read(piece, self.positions)
            if self.encoder.champion is not None and filled:
                inputs = _beside(self._said(piece, made, known), inputs)
        except InputError:
            labels.forget(known)
            raise
        queries = None if query is None else piece.texts(self.positions[query])
        times = self._times(piece)
        return Batch(inputs, made, piece, queries, absent, times, weights, delays, keys)

    def _said(self, piece: Piece, made: np.ndarray | None, known: int) -> np.ndarray:
        """Return a champion's predictions plus 1; 0 for none, or a label unknown before the row."""
        labels, name = self.encoder.labels, self.encoder.champion
        assert name is not None
        try:
            codes = np.array([labels.place(text) for text in piece.texts(self.positions[name])])
        except InputError as error:
            raise piece.error(0, name, str(error)) from error
        before = np.full(len(piece), known)
        if made is not None and len(made):
            before = np.maximum.accumulate(np.r_[known, made[:-1] + 1])
        return np.where(codes < before, codes + 1.0, 0.0)

    def _keys(self, piece: Piece) -> list[str] | None:
        """Return whose rows these are; None without such a column."""
        name = self.encoder.key
        if name is None:
            return None
        texts = [text.strip() for text in piece.texts(self.positions[name])]
        for row, text in enumerate(texts):
            if is_missing(text):
                seen = f": {text!r} stands for no value" * bool(text)
                advice = "mend it, or leave the row out"
                raise piece.error(row, name, f"the key is missing{seen}", advice)
        return texts

    def _weights(self, piece: Piece, absent: np.ndarray | None) -> np.ndarray | None:
        """Return how often rows count, 1 where they have no label; None without such a column."""
        name, columns = self.encoder.weight, self.encoder.columns
        if name is None or name not in self.positions:
            return None
        decimal = "." if isinstance(columns, int) else columns.decimal
        made = np.ones(len(piece))
        for row, text in enumerate(piece.texts(self.positions[name])):
            if absent is not None and absent[row]:
                continue
            if is_missing(text):
                said = "the weight is missing"
                raise piece.error(row, name, said, "mend it; 0 leaves the row out of learning")
            value = amount(text, decimal)
            if value != 0.0 and (value is None or not LEAST_WEIGHT <= value <= MOST_WEIGHT):
                said = f"expected a weight of 0, or from {LEAST_WEIGHT:g} to {MOST_WEIGHT:,.0f}"
                raise piece.error(row, name, f"{said}, but saw {text[:40]!r}")
            made[row] = value
        return made

    def _delays(self, piece: Piece, absent: np.ndarray | None) -> np.ndarray | None:
        """Return after how many more rows labels come, -1 for never; None without such a column."""
        name, columns = self.encoder.delay, self.encoder.columns
        if name is None or name not in self.positions:
            return None
        decimal = "." if isinstance(columns, int) else columns.decimal
        made = np.full(len(piece), -1, dtype=np.int64)
        for row, text in enumerate(piece.texts(self.positions[name])):
            if is_missing(text) or (absent is not None and absent[row]):
                continue
            value = amount(text, decimal)
            if value is None or not abs(value) <= MOST_DELAY or value != int(value):
                said = "expected after how many more rows the label comes, a whole number"
                said += f" up to {MOST_DELAY:,}"
                advice = "empty or negative if it never comes"
                raise piece.error(row, name, f"{said}, but saw {text[:40]!r}", advice)
            made[row] = max(int(value), -1)
        return made

    def _times(self, piece: Piece) -> Sequence[str] | None:
        """Return when rows were, as it is written; empty where it is missing."""
        place = self.positions.get(self.encoder.time or "")
        if place is None or self.encoder.time is None or not self.learning:
            return None
        texts = (text.strip() for text in piece.texts(place))
        return ["" if is_missing(text) else text[:LONGEST_TIME] for text in texts]

    def unlabelled(self, piece: Piece) -> np.ndarray | None:
        """Return which rows have no label in one of its columns; None if all have one."""
        absent = np.zeros(len(piece), dtype=bool)
        for name in self.encoder.labels.names if self.labelled else ():
            texts = piece.texts(self.positions[name])
            absent |= np.array([not is_label(text) for text in texts], dtype=bool)
        return absent if absent.any() else None

    def _labels(self, piece: Piece, absent: np.ndarray | None) -> np.ndarray:
        """Return labels; where they are absent, any."""
        labels = self.encoder.labels
        if absent is None:
            return labels.encode(piece, self.positions)
        there = labels.encode(piece.take(np.flatnonzero(~absent).tolist()), self.positions)
        made = np.zeros((len(piece), *there.shape[1:]), dtype=there.dtype)
        made[~absent] = there
        return made

    def problems(self, piece: Piece) -> dict[int, str]:
        """Return why rows are refused, by their places; found by halving."""
        found: dict[int, str] = {}

        def look(start: int, stop: int) -> None:
            part = piece.take(range(start, stop))
            part.commands = False
            try:
                self.batch(part)
            except InputError as error:
                if stop - start == 1:
                    found[start] = str(error).removeprefix(f"{piece.name}, ")
                else:
                    middle = (start + stop) // 2
                    look(start, middle)
                    look(middle, stop)

        look(0, len(piece))
        return found


def matching(pattern: str, names: Collection[str]) -> list[str]:
    """Return the names that match a given name or pattern: names of a dict are found by hash.

    >>> matching("id_*", ["age", "id_1", "id_2"]), matching("a[1]", ["a1", "a[1]"])
    (['id_1', 'id_2'], ['a[1]'])
    """
    if pattern in names:
        return [pattern]
    return [name for name in names if fnmatchcase(name, pattern)]


def close_to(name: str, names: Sequence[str]) -> str:
    """Return suggestions of similar names, for a message.

    >>> close_to("lable", ["age", "label"])
    ": did you mean 'label'?"
    >>> close_to("target", ["age", "size"])
    ': it has age, size'
    """
    # Not only spelling: also names that differ in case.
    small = {other.lower()[:LONGEST]: other for other in names[:COMPARED]}
    found = difflib.get_close_matches(name.lower()[:LONGEST], small, n=1, cutoff=0.7)
    if found:
        return f": did you mean {small[found[0]]!r}?"
    return f": it has {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"


def _few(names: Sequence[str], sign: str = ", ") -> str:
    """Return the first names of a list.

    >>> _few(["a", "b"]), _few("abcdefg", ",")
    ('a, b', 'a,b,c,d,e,...')
    """
    return sign.join([*names[:5], *(["..."] if len(names) > 5 else [])])


def _beside(first: np.ndarray, inputs: Inputs) -> Inputs:
    """Return inputs with one more value, their first."""
    if not hasattr(inputs, "indptr"):
        return np.column_stack([first, inputs])
    from scipy.sparse import csr_array, hstack

    return csr_array(hstack([csr_array(first[:, np.newaxis]), inputs], format="csr"))


def _widened(piece: Piece, width: int) -> csr_array:
    """Return rows of a known number of features."""
    from scipy.sparse import csr_array

    matrix = piece.matrix
    beyond = np.flatnonzero(matrix.indices >= width)
    if len(beyond):
        entry = int(beyond[0])
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise piece.error(
            row,
            "",
            f"index {matrix.indices[entry]} is beyond the {width} features known: say how many "
            "there are by --features before the first run",
        )
    return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(len(piece), width))
