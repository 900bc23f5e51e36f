"""Guess the kind of labels from the first values of their columns."""

from __future__ import annotations

from driftline.app.tables.labels import MOST_CLASSES, Labels
from driftline.app.tables.options import Options
from driftline.app.tables.piece import Piece, Table
from driftline.app.tables.values import is_date, is_missing, number
from driftline.errors import InputError

__all__ = ["guess_labels"]

#: More distinct whole numbers than this look like a quantity, not like classes.
MOST_NUMBERS = 50


def guess_labels(
    table: Table, head: Piece, names: list[str], query: str | None, options: Options
) -> Labels:
    """Return the labels that columns hold, or refuse them."""
    texts = [text.strip() for text in head.texts(table.columns.index(names[0]))]
    there = [text for text in texts if not is_missing(text) or text.lower() == "none"]
    values = [number(text) for text in there]
    whole = all(v is not None and abs(v) < 2**53 and v == int(v) for v in values) and bool(there)
    numeric = all(value is not None for value in values) and bool(there)
    task = options.task
    if task is None:
        task = "tags" if len(names) > 1 else "classes" if query is None else "ranking"
        task = "levels" if options.levels else task
    if task == "ranking":
        if query is None:
            raise InputError(
                "a ranking needs to know which rows belong together: name the column by --query"
            )
        top = max([4, *(int(v) for v in values if v is not None and 0 <= v < 2**31)])
        return Labels(task, names, highest=options.highest or top)
    if task == "tags":
        return Labels(task, names)
    distinct = list(dict.fromkeys(there))
    if task == "levels":
        return _levels(names, distinct, whole, options)
    if numeric and (not whole or len(set(distinct)) > MOST_NUMBERS) and options.task is None:
        raise InputError(
            f"{table.name}: column {names[0]!r} looks like a quantity to predict, with "
            f"{len(distinct)} different numbers such as {', '.join(distinct[:3])}; driftline "
            "predicts classes, tags, levels and rankings: name the label column by --label, or "
            "say --task classes if these are classes"
        )
    if any(is_date(text) for text in distinct[:1]) and all(map(is_date, distinct)):
        raise InputError(
            f"{table.name}: column {names[0]!r} has dates: name the label column by --label"
        )
    if len(distinct) > MOST_CLASSES:
        raise InputError(
            f"{table.name}: column {names[0]!r} has {len(distinct)} different labels in "
            f"{len(head)} rows: name the label column by --label"
        )
    # Sorted, so that the order says nothing about which label comes first.
    if whole:
        ordered = [str(value) for value in sorted({int(float(text)) for text in distinct})]
    else:
        ordered = sorted(distinct)
    return Labels(task, names, ordered, whole)


def _levels(names: list[str], distinct: list[str], whole: bool, options: Options) -> Labels:
    if options.levels:
        as_written = Labels("levels", names, whole=whole)
        values = [as_written.canonical(level) for level in options.levels]
        return Labels("levels", names, list(dict.fromkeys(values)), whole)
    if not whole or len(distinct) < 2:
        raise InputError(
            f"levels of column {names[0]!r} are no whole numbers, or only one: name them, from "
            "the lowest to the highest, as in --levels low,middle,high"
        )
    numbers = sorted({int(float(text)) for text in distinct})
    return Labels("levels", names, [str(value) for value in numbers], whole)
