"""Guess the kind of a column from its first values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from driftline.app.tables.columns import Column
from driftline.app.tables.options import Options
from driftline.app.tables.piece import Piece
from driftline.app.tables.table_error import TableError
from driftline.app.tables.values import (
    FLAGS,
    amount,
    are_in_order,
    decimal_comma,
    is_date,
    is_missing,
    number,
)

__all__ = ["guess_column", "missing_values"]

#: The most texts with a feature of their own; all others share one.
MOST_CATEGORIES = 100


def guess_column(
    head: Piece, name: str, texts: Sequence[str], options: Options, notes: list[str]
) -> Column:
    """Return a column with its kind; remarks for the user are added to the notes."""
    stripped = [text.strip() for text in texts]
    there = [text for text in stripped if not is_missing(text)]
    counts = Counter(there)
    if name not in options.text:
        odd = [text for text in there if number(text, options.decimal) is None]
        if not odd:
            return Column(name, "number")
        if all(amount(text, options.decimal) is not None for text in there):
            notes.append(f"column {name!r} has amounts such as {odd[0]!r}, taken as numbers")
            return Column(name, "amount")
        _refuse_other_signs(head, name, stripped, odd, options)
        if len(odd) < 0.5 * len(there):
            change = {"ignore" if _is_free(counts) else "text": [name]}
            raise _refused(
                head,
                stripped.index(odd[0]),
                name,
                f"saw {odd[0][:40]!r}, but {len(there) - len(odd)} of {len(there)} values are "
                f"numbers: correct it, take the column as text by --text {name}, or leave it out "
                f"by --ignore {name}",
                **change,
            )
        if all(text.lower() in FLAGS for text in there):
            return Column(name, "flag")
        if all(map(is_date, there)):
            raise _refused_date(head, stripped.index(there[0]), name, there, options)
    if _is_free(counts):
        raise TableError(
            f"{head.name}: column {name!r} has {len(counts)} different texts in {len(there)} "
            f"rows, such as {there[0][:40]!r}: it looks like a name or free text; leave it "
            f"out by --ignore {name}",
            ignore=[name],
        )
    if len(counts) > MOST_CATEGORIES:
        notes.append(
            f"column {name!r} has {len(counts)} different texts: the {MOST_CATEGORIES} most "
            "frequent ones get a feature each, all others share one"
        )
    kept = {text for text, _ in counts.most_common(MOST_CATEGORIES)}
    return Column(name, "text", tuple(text for text in counts if text in kept))


def missing_values(
    head: Piece, name: str, texts: Sequence[str], column: Column | None, options: Options
) -> list[TableError]:
    """Return a refusal of the first value that is missing or infinite, where these are refused."""
    if options.missing != "refuse" or not head.commands:
        return []
    numeric = column is not None and column.kind == "number"
    for row, text in enumerate(texts):
        if is_missing(text):
            said = "the value is missing"
        elif numeric and not np.isfinite(number(text, options.decimal) or 0.0):
            said = f"expected a number, but saw {text.strip()[:40]!r}"
        else:
            continue
        if all(map(is_missing, texts)):
            said = f"the value is missing, as in all of the first {len(texts):,} rows"
            return [_refused(head, row, name, f"{said}: say --ignore {name}", ignore=[name])]
        return [
            _refused(
                head,
                row,
                name,
                f"{said}: say --missing zero or --missing mean to fill it in, or --ignore {name} "
                "to leave the column out",
                missing="mean",
            )
        ]
    return []


def _is_free(counts: Counter[str]) -> bool:
    """Return whether texts look like names or free text, by how often each comes."""
    return len(counts) > max(MOST_CATEGORIES, 0.5 * counts.total())


def _refused_date(
    head: Piece, row: int, name: str, texts: list[str], options: Options
) -> TableError:
    """Return a refusal of dates; of the first column of ordered ones that it could be the time."""
    said, out = f"{texts[0]!r} looks like a date", f"leave the column out by --ignore {name}"
    numbers = "turn it into numbers such as hour and weekday first"
    if options.time is not None or not head.commands:
        return _refused(head, row, name, f"{said}: {out}, or {numbers}", ignore=[name])
    change = {"time": name} if are_in_order(texts) else {"ignore": [name]}
    shown = f"say --time {name} to have it in the report"
    return _refused(head, row, name, f"{said}: {shown}, {out}, or {numbers}", **change)


def _refused(head: Piece, row: int, name: str, message: str, **changes: object) -> TableError:
    return TableError(str(head.error(row, name, message)), **changes)


def _refuse_other_signs(
    head: Piece, name: str, texts: list[str], odd: list[str], options: Options
) -> None:
    """Refuse texts that would be numbers with another decimal sign."""
    if options.decimal == "," and sum(number(text) is not None for text in odd) > 0.5 * len(odd):
        raise _refused(
            head,
            texts.index(odd[0]),
            name,
            f"{odd[0]!r} has a point, but --decimal is a comma: write it without a sign between "
            f"thousands, or say --text {name} if it is not a number",
            ignore=[name],
        )
    if options.decimal == "." and sum(map(decimal_comma, odd)) > 0.5 * len(odd):
        raise _refused(
            head,
            texts.index(odd[0]),
            name,
            f"{odd[0]!r} looks like a number with a decimal comma: say --decimal , if it is, or "
            f"--text {name} if not",
            decimal=",",
        )
