"""Predictions of a learner for every key, from a table or a stream of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from driftline.errors import InputError
from driftline.integrations.spark.columns import ABSENT, ID, INPUT, LABEL, ORDER, Plan
from driftline.keyed.events import KeyPlayer
from driftline.learner import Learner
from driftline.state import archive

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["predictions"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

#: Names of types in Spark.
WHOLE = ("tinyint", "smallint", "int", "bigint")
TIMES = ("timestamp", "timestamp_ntz", "date")
FLOATS = ("float", "double")
TEXT, BINARY, BOOL = "string", "binary", "boolean"
#: What stands in the place of an absent value, beside a flag.
BLANKS: dict[str, Any] = {TEXT: "", BINARY: b""}


def predictions(
    frame: DataFrame,
    learner: Learner,
    *,
    key: str | Sequence[str],
    features: str | Sequence[str],
    label: str,
    order: str,
    id: str | None = None,
    outstanding: int = 1000,
    early: int = 1000,
    remembered: int = 1000,
    expires: float | None = None,
) -> DataFrame:
    """Return what the learners of all keys predict for the rows of a table or a stream.

    A row has an input, or a label, or both. Its input is predicted by the learner of its key, as
    this has become by the rows before; its label is learned from. A label in a row of its own finds
    its input by key and id, in whichever of both rows comes first. A row whose id came before is
    ignored; so is a second label. A row that cannot be played is refused: it has an ``error`` in
    the result, changes nothing, and all others are played.

    Results are those of ``dl.Keyed(learner)``, bit for bit, if that plays the rows of each key in
    the same order: by micro batches, and within one by the column ``order``.

    Parameters
    ----------
    frame
        A table, or a stream.
    learner
        A new learner, of which every key gets its own.
    key
        The column of keys, whole numbers, texts or bytes; or several, whose values together are the
        key: a tuple.
    features
        The columns of features, numbers; or one, an array of numbers. A row in which all are null
        has no input.
    label
        The column of labels, as the task takes them: whole numbers, or arrays of these. Null where
        a row has no label.
    order
        The column that says which rows of a key come first: whole numbers, or times. Rows of equal
        order are taken by id, inputs before labels.
    id
        The column of ids, whole numbers or texts, one for each input of a key. A stream needs it; a
        table without one has no labels in rows of their own.
    outstanding
        How many inputs of a key may wait for their labels; then the oldest is forgotten, and its
        label refused.
    early
        How many labels of a key may wait for their inputs; then the oldest is refused.
    remembered
        How many ids of a key are remembered after their labels came, to ignore those that come
        twice.
    expires
        After how many seconds, by the clock, an input or a label that waits in a stream is given
        up. Default: never. Spark keeps a query with timers running, also one that is triggered by
        ``availableNow``, unless ``spark.sql.streaming.noDataMicroBatches.enabled`` is false.

    Returns
    -------
    DataFrame
        The columns of the key, the id, ``prediction`` (a whole number, or an array), ``rounds``
        (after how many rounds of learning it was made), and ``error``.
    """
    functions = _functions()
    keys = (key,) if isinstance(key, str) else tuple(key)
    if not keys:
        raise InputError("a key has one column or more")
    types = dict(frame.dtypes)
    named = [*keys, *([] if id is None else [id]), "prediction", "rounds", "error"]
    if twice := [name for name in named if named.count(name) > 1]:
        raise InputError(f"two columns of the result would be called {twice[0]!r}: rename one")
    if frame.isStreaming and id is None:
        raise InputError("a stream needs id=, the column by which labels find their inputs")
    if expires is not None and not frame.isStreaming:
        raise InputError("expires= is for streams: in a table all rows come at once")
    limits = {"outstanding": outstanding, "early": early, "remembered": remembered}
    if id is None:  # every row is new, and none waits
        limits = {"outstanding": 0, "early": 0, "remembered": 0}
    time = None if expires is None else _milliseconds(expires)
    task = KeyPlayer(learner, **limits, expires=time).task
    saved: Any = learner
    plan = Plan(
        learner=archive.packed(*saved.to_saved()),
        limits=(*limits.items(), ("expires", time)),
        keys=keys,
        id=id,
        single=task.predictions.size == 1,
    )
    columns = _Columns(functions, types)
    for name in keys:
        columns.value(name, name, (*WHOLE, TEXT, BINARY), "key", 0)
    if id is None:
        columns.made.append(functions.lit(0).alias(ID))
    else:
        columns.value(id, ID, (*WHOLE, TEXT), "id", 1)
    columns.order(order)
    columns.features(features)
    columns.label(label)
    grouped = frame.select(*columns.made, columns.absent.alias(ABSENT)).groupBy(*keys)
    form = "bigint" if plan.single else "array<bigint>"
    parts = [f"{_quoted(name)} {types[name]}" for name in (*keys, *([] if id is None else [id]))]
    schema = ", ".join([*parts, f"prediction {form}", "rounds bigint", "error string"])
    if not frame.isStreaming:
        return grouped.applyInPandas(lambda own, rows: plan.play_table(own, rows), schema)
    _check_provider(frame)
    from driftline.integrations.spark.processor import TIMED, UNTIMED, Processor

    mode = UNTIMED if time is None else TIMED
    processor = Processor(plan, timed=time is not None)
    return grouped.transformWithStateInPandas(processor, schema, "append", mode)


class _Columns:
    """Columns in the form in which workers take them; null where a bit of ``absent`` says so."""

    def __init__(self, functions: Any, types: dict[str, str]):
        self._functions, self._types = functions, types
        self.made: list[Column] = []
        self.absent: Column = functions.lit(0)

    def value(self, name: str, alias: str, kinds: Sequence[str], what: str, bit: int) -> None:
        """Add a column of single values."""
        kind = self._kind(name, kinds, what)
        column = self._functions.col(_quoted(name))
        blank = self._functions.lit(BLANKS.get(kind, 0)).cast(kind)
        self.made.append(self._functions.coalesce(column, blank).alias(alias))
        self._flag(column.isNull(), bit)

    def order(self, name: str) -> None:
        """Add the column by which rows are sorted; of times, their microseconds."""
        kind = self._kind(name, (*WHOLE, *TIMES), "order")
        functions, column = self._functions, self._functions.col(_quoted(name))
        if kind in TIMES:
            column = functions.unix_micros(column.cast("timestamp"))
        zero = functions.lit(0)
        self.made.append(functions.coalesce(column.cast("bigint"), zero).alias(ORDER))
        self._flag(column.isNull(), 2)

    def features(self, names: str | Sequence[str]) -> None:
        """Add the input: a column of arrays, or columns of numbers."""
        functions = self._functions
        numbers = (*WHOLE, *FLOATS, BOOL)
        if isinstance(names, str):
            self._kind(names, [f"array<{own}>" for own in numbers], "features")
            column = functions.col(_quoted(names)).cast("array<double>")
            absent = column.isNull()
        else:
            if not names:
                raise InputError("features= names one column or more")
            for name in names:
                self._kind(name, numbers, "features")
            columns = [functions.col(_quoted(name)).cast("double") for name in names]
            column, absent = functions.array(*columns), functions.coalesce(*columns).isNull()
        self.made.append(column.alias(INPUT))
        self._flag(absent, 3)

    def label(self, name: str) -> None:
        """Add the label: whole numbers, which may be written as floats, or arrays of these."""
        functions, singles = self._functions, (*WHOLE, *FLOATS, BOOL)
        kinds = (*singles, *(f"array<{own}>" for own in singles))
        kind = self._kind(name, kinds, "label")
        column = functions.col(_quoted(name))
        whole = "double" if any(own in kind for own in FLOATS) else "bigint"
        if kind in singles:
            given = functions.coalesce(column.cast(whole), functions.lit(0).cast(whole))
        else:
            given = column.cast(f"array<{whole}>")
        self.made.append(given.alias(LABEL))
        self._flag(column.isNull(), 4)

    def _flag(self, absent: Column, bit: int) -> None:
        flag = self._functions.when(absent, 1 << bit).otherwise(0)
        self.absent = self.absent.bitwiseOR(flag)

    def _kind(self, name: str, kinds: Sequence[str], what: str) -> str:
        """Return the type of a column, if it is one of these."""
        kind = self._types.get(name)
        if kind is None:
            raise InputError(
                f"{what}= names the column {name!r:.80}, but there are {', '.join(self._types)}"
            )
        if kind not in kinds:
            raise InputError(
                f"the column {name!r:.80} has the type {kind}: {what} is one of {', '.join(kinds)}"
            )
        return kind


def _quoted(name: str) -> str:
    """Return the name of a column as Spark takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _functions() -> Any:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        from pyspark.sql import functions
    except ImportError as error:
        raise InputError(f"{error}: it comes with the extra spark") from error
    return functions


def _check_provider(frame: DataFrame) -> None:
    """Refuse a session whose state store cannot keep what streams need."""
    try:
        import google.protobuf  # noqa: F401
    except ImportError as error:
        raise InputError(f"{error}: it comes with the extra spark") from error
    session = frame.sparkSession
    if session.conf.get(PROVIDER, "") != ROCKS:
        raise InputError(
            f"streams with state need RocksDB: spark.conf.set({PROVIDER!r}, {ROCKS!r}) before"
        )


def _milliseconds(seconds: Any) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise InputError(f"expires is a number of seconds, not {seconds!r:.40}")
    return max(1, round(seconds * 1000))
