"""Guess an encoder from the first rows of a table: kinds of columns, and labels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from driftline.app.tables.columns import Column, Columns
from driftline.app.tables.encoder import Encoder, close_to, matching
from driftline.app.tables.given import GivenRows
from driftline.app.tables.guess_column import guess_column, missing_values
from driftline.app.tables.labels import LabelCodec, guess_codec
from driftline.app.tables.labels.codec import is_label
from driftline.app.tables.options import Options
from driftline.app.tables.piece import Piece, Table
from driftline.app.tables.table_error import TableError, joined
from driftline.errors import InputError

__all__ = ["guess"]

#: Names that label columns usually have, best first.
USUAL = ("label", "class", "target", "y")


def guess(table: Table | GivenRows, head: Piece, options: Options) -> tuple[Encoder, list[str]]:
    """Return an encoder for a table from its first rows, and remarks for the user."""
    names, notes = {name: place for place, name in enumerate(table.columns)}, [*table.notes]
    ignored = _named(table, options.ignore, "--ignore")
    query = options.query
    if query is None and table.width is not None and "qid" in names and options.key != "qid":
        query = "qid"
    if query is not None and query not in names:
        raise InputError(f"{table.name} has no column {query!r}{close_to(query, table.columns)}")
    if options.time is not None:
        ignored += _single(table, options, ignored, "time")
    weight = [] if options.weight is None else _single(table, options, ignored, "weight")
    delay = [] if options.delay_column is None else _single(table, options, ignored, "delay_column")
    key = [] if options.key is None else _single(table, options, ignored, "key")
    if options.champion is not None and table.width is not None:
        raise InputError(
            f"--champion names a column, and {table.name} has index:value pairs: write the table "
            "as CSV"
        )
    champion = [] if options.champion is None else _single(table, options, ignored, "champion")
    taken = {*ignored, *weight, *delay, *key, *champion, query}
    free = [name for name in names if name not in taken]
    named = _named(table, options.label, "--label")
    labels = [name for name in named if name not in taken]
    if named and not labels:
        raise InputError(
            f"column {named[0]!r} is named by --label, and left out by --ignore or taken for the "
            "query, the time, the weight, the delay, the key or the champion: it can be one of "
            "these only"
        )
    if not labels:
        if not free:
            raise InputError(f"{table.name} has no column that could be the label")
        small = {name.lower(): name for name in reversed(free)}
        labels = [next((small[name] for name in USUAL if name in small), free[-1])]
        if table.width is None:
            notes.append(f"label: column {labels[0]!r}; another one by --label")
    made = guess_codec(table, head, labels, query, options)
    notes += made.alike
    if made.grows and len(made.values) == 1:
        notes.append(
            f"label {labels[0]!r} is {made.values[0]!r} in all of the first {len(head):,} rows: if "
            "it stays so, there is nothing to learn; another column by --label"
        )
    if query is not None and not made.task.layout.ragged:
        if options.query is not None:
            raise InputError(
                f"column {query!r} is named by --query, which goes with a ranking, but the task "
                f"is {made.kind}: say --ignore {query} instead to leave it out"
            )
        ignored.append(query)
        query = None
    first = (query, ignored, options.time, options.weight, options.balance, options.delay_column)
    _refuse_weights(made, options)
    _refuse_key(made, options)
    _refuse_champion(made, options)
    more = (*first, options.key, options.champion)
    if table.width is not None:
        return Encoder(table.width, made, *more), notes
    outcomes = set(labels)
    rest = [name for name in free if name not in outcomes]
    if not rest:
        hint = (
            f" (the line is parted at {table.delimiter!r})" if hasattr(table, "delimiter") else ""
        )
        raise InputError(
            f"{table.name} has no column beside the label {labels[0]!r}{hint}: expected inputs "
            "too; if values are separated by another sign, name it by --delimiter"
        )
    options = replace(options, text=dict.fromkeys(_named(table, options.text, "--text")))
    found = _unlabelled(table, head, made, options)
    columns: list[Column] = []
    for name in rest:
        texts, column = head.texts(names[name]), None
        try:
            column = guess_column(head, name, texts, options, notes)
            columns.append(column)
        except TableError as refusal:
            refusal.column = name
            found.append(refusal)
            if {"ignore", "time"} & refusal.changes.keys():
                continue
        found += missing_values(head, name, texts, column, options)
    if found:
        raise _all_of(table, head, found, columns, rest)
    sparse = table.sparse and all(column.kind == "number" for column in columns)
    inputs = Columns(columns, options.missing, options.decimal, sparse)
    notes.append(f"inputs: {len(columns)} columns; task: {made.kind}")
    return Encoder(inputs, made, *more), notes


def _single(
    table: Table | GivenRows, options: Options, ignored: list[str], option: str
) -> list[str]:
    """Return the column of times, weights, delays, keys or predictions, which is no input."""
    name, names = str(getattr(options, option)), table.columns
    others = ("time", "weight", "delay_column", "key", "champion")
    said = option.replace("_", "-")
    if name not in names:
        raise InputError(
            f"{table.name} has no column {name!r}, named by --{said}{close_to(name, names)}"
        )
    before = [one for one in others[: others.index(option)] if getattr(options, one) == name]
    before += [one for one in ("label", "text") if name in getattr(options, one)]
    if name in ignored or name == options.query or before:
        other = "left out by --ignore" if name in ignored else "named by --query"
        other = f"named by --{before[0].replace('_', '-')}" if before else other
        raise InputError(f"column {name!r} is named by --{said}, and {other}: it can be one only")
    return [name]


def _refuse_weights(labels: LabelCodec, options: Options) -> None:
    """Refuse weights, and costs of no answer, for labels that have none."""
    if options.abstain is not None and not labels.abstains:
        raise InputError(f"--abstain is for classes, and the task is {labels.kind}: leave it out")
    if options.balance and not labels.balances:
        raise InputError(
            f"--balance is for classes and levels, and the task is {labels.kind}: leave it out"
        )
    if options.balance and options.delay_column is not None:
        raise InputError(
            "--balance counts labels as rows come, and --delay-column lets these come later: leave "
            "one of them out"
        )
    if options.delay_column is not None and labels.task.layout.ragged:
        raise InputError(
            "--delay-column is for rows that are learned from one by one, and the task is "
            f"{labels.kind}: say --ignore {options.delay_column} instead to leave the column out"
        )
    if options.weight is not None and labels.task.layout.ragged:
        raise InputError(
            f"--weight is for rows that are learned from one by one, and the task is "
            f"{labels.kind}: say --ignore {options.weight} instead to leave the column out"
        )


def _refuse_key(labels: LabelCodec, options: Options) -> None:
    """Refuse learners by key where these are not for such labels."""
    if options.key is None:
        return
    if labels.task.layout.ragged:
        raise InputError(
            f"--key is for rows that are learned from one by one, and the task is {labels.kind}: "
            f"say --ignore {options.key} instead to leave the column out"
        )
    if options.delay_column is not None:
        raise InputError("--delay-column does not go with --key yet: leave one of them out")


def _refuse_champion(labels: LabelCodec, options: Options) -> None:
    """Refuse a column of predictions where these cannot be guarded."""
    name = options.champion
    if name is None:
        return
    if labels.kind != "classes":
        raise InputError(
            f"--champion is for classes, and the task is {labels.kind}: say --ignore {name} "
            "instead to leave the column out"
        )
    if options.key is not None:
        raise InputError("--champion does not go with --key yet: leave one of them out")


def _unlabelled(
    table: Table | GivenRows, head: Piece, labels: LabelCodec, options: Options
) -> list[TableError]:
    """Return a refusal of the first label that is missing, where these are refused."""
    if options.unlabelled != "refuse" or not head.commands:
        return []
    places = {name: place for place, name in enumerate(table.columns)}
    for name in labels.names:
        for row, text in enumerate(head.texts(places[name])):
            if not is_label(text):
                return [labels.missing(head, row, name)]
    return []


def _all_of(
    table: Table | GivenRows,
    head: Piece,
    found: list[TableError],
    columns: list[Column],
    rest: list[str],
) -> TableError:
    """Return one refusal for all, with options that go together."""
    numbers = [c.name for c in columns if c.kind == "number"]
    places = {name: place for place, name in enumerate(table.columns)}
    if any("." in text for name in numbers for text in head.texts(places[name])):
        for refusal in found:  # a decimal comma would be that of all columns
            if refusal.changes.pop("decimal", None):
                refusal.changes["ignore"] = [refusal.column]
    times = [refusal for refusal in found if "time" in refusal.changes]
    for refusal in times[1:]:  # there is one time
        refusal.changes = {"ignore": [refusal.changes["time"]]}
    made = joined(table.name, found)
    if set(rest) <= {*made.changes.get("ignore", ()), made.changes.get("time")}:
        made.changes = {}  # nothing would be left
    return made


def _named(table: Table | GivenRows, patterns: Collection[str], option: str) -> list[str]:
    """Return the columns that match names and patterns."""
    known, found = dict.fromkeys(table.columns), dict[str, None]()
    for pattern in patterns:
        fits = matching(pattern, known)
        if not fits:
            raise InputError(
                f"{table.name} has no column {pattern!r}, named by {option}"
                f"{close_to(pattern, table.columns)}"
            )
        found |= dict.fromkeys(fits)
    return list(found)
