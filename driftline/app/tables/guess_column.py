"""Guess the kind of a column from its first values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from driftline.app.tables.columns import Column
from driftline.app.tables.options import Options
from driftline.app.tables.piece import Piece
from driftline.app.tables.values import FLAGS, decimal_comma, is_date, is_missing, number
from driftline.errors import InputError

__all__ = ["guess_column"]

#: The most texts with a feature of their own; all others share one.
MOST_CATEGORIES = 100


def guess_column(
    head: Piece, name: str, texts: Sequence[str], options: Options, notes: list[str]
) -> Column:
    """Return a column with its kind; remarks for the user are added to the notes."""
    stripped = [text.strip() for text in texts]
    there = [text for text in stripped if not is_missing(text)]
    if name not in options.text:
        odd = [text for text in there if number(text, options.decimal) is None]
        if not odd:
            return Column(name, "number")
        _refuse_other_signs(head, name, stripped, odd, options)
        if len(odd) < 0.5 * len(there):
            row = stripped.index(odd[0])
            raise head.error(
                row,
                name,
                f"saw {odd[0][:40]!r}, but {len(there) - len(odd)} of {len(there)} values are "
                f"numbers: correct it, take the column as text by --text {name}, or leave it out "
                f"by --ignore {name}",
            )
        if all(text.lower() in FLAGS for text in there):
            return Column(name, "flag")
        if all(map(is_date, there)):
            raise head.error(
                stripped.index(there[0]),
                name,
                f"{there[0]!r} looks like a date: leave the column out by --ignore {name}, or turn "
                "it into numbers such as hour and weekday first",
            )
    counts = Counter(there)
    if len(counts) > MOST_CATEGORIES:
        if len(counts) > 0.5 * len(there):
            raise InputError(
                f"{head.name}: column {name!r} has {len(counts)} different texts in {len(there)} "
                f"rows, such as {there[0][:40]!r}: it looks like a name or free text; leave it "
                f"out by --ignore {name}"
            )
        notes.append(
            f"column {name!r} has {len(counts)} different texts: the {MOST_CATEGORIES} most "
            "frequent ones get a feature each, all others share one"
        )
    kept = {text for text, _ in counts.most_common(MOST_CATEGORIES)}
    return Column(name, "text", tuple(text for text in counts if text in kept))


def _refuse_other_signs(
    head: Piece, name: str, texts: list[str], odd: list[str], options: Options
) -> None:
    """Refuse texts that would be numbers with another decimal sign."""
    if options.decimal == "," and sum(number(text) is not None for text in odd) > 0.5 * len(odd):
        raise head.error(
            texts.index(odd[0]),
            name,
            f"{odd[0]!r} has a point, but --decimal is a comma: write it without a sign between "
            f"thousands, or say --text {name} if it is not a number",
        )
    if options.decimal == "." and sum(map(decimal_comma, odd)) > 0.5 * len(odd):
        raise head.error(
            texts.index(odd[0]),
            name,
            f"{odd[0]!r} looks like a number with a decimal comma: say --decimal , if it is, or "
            f"--text {name} if not",
        )
