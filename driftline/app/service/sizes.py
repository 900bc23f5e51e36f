"""How large models and answers may be: it is said before the memory is taken."""

from __future__ import annotations

from typing import Any

from driftline.app.runs import TableModel
from driftline.app.tables.labels.classes import MOST_CLASSES
from driftline.committee import Committee
from driftline.errors import InputError

__all__ = [
    "COLUMNS",
    "MEMORY",
    "check_columns",
    "check_model",
    "check_request",
    "check_rows",
    "check_size",
    "ticket_bytes",
]

#: The most columns of a model by name.
COLUMNS = 4096
#: The most bytes of a learner's state, and of what the rows of a request take.
MEMORY = 256 << 20
#: How many bytes a chance takes in an answer beside the name of its class.
CHANCE = 30


def megabytes(size: int) -> int:
    """Return a number of bytes as megabytes, rounded up."""
    return -(-size >> 20)


def check_columns(count: int) -> None:
    """Refuse more columns than a model may have."""
    if count > COLUMNS:
        raise InputError(
            f"a model has {COLUMNS:,} columns at most, but this one would have {count:,}: leave "
            "some of them out"
        )


def check_size(size: int, memory: int, what: str) -> None:
    """Refuse a state of more bytes than are allowed."""
    if size > memory:
        raise InputError(
            f"a model of {what} takes some {megabytes(size):,} MB; at most {megabytes(memory):,} "
            f"MB are allowed here: --memory {megabytes(size)} allows more"
        )


def check_model(model: TableModel, memory: int, classes: int | None = None) -> None:
    """Refuse a model that is too large, or would be with so many classes."""
    outcomes, what = classes or len(model.classes), f"{model.features:,} features"
    if model.has_names:
        check_columns(len(model.columns))
        what = f"{len(model.columns):,} columns"
    if outcomes > MOST_CLASSES:
        raise InputError(
            f"a model has {MOST_CLASSES:,} {model.task} at most, but this one would have "
            f"{outcomes:,}"
        )
    what += f" and {outcomes:,} {model.task}" * bool(outcomes)
    check_size(model.state_bytes(classes), memory, what)


def check_rows(model: TableModel, rows: int, memory: int) -> None:
    """Refuse rows whose features and answers together would be too large."""
    names = model.classes
    each = 8 * model.features + sum(map(len, names)) + CHANCE * len(names)
    check_request(rows, each, memory, "in features and answers")


def check_request(rows: int, each: int, memory: int, what: str) -> None:
    """Refuse a request of rows that take so many bytes each; one row is never too large."""
    if rows > 1 and rows * each > memory:
        raise InputError(
            f"{rows:,} rows take some {megabytes(rows * each):,} MB {what}; at most "
            f"{megabytes(memory):,} MB are allowed here: send {max(1, memory // each):,} at a time"
        )


def ticket_bytes(learner: Any, features: int) -> int:
    """Return about how many bytes a ticket has: a row, and losses of all labels by every member.

    Or what members predict, where that is one label each. Of a query, or a sequence, for each of
    its rows.
    """
    own = len(learner.members) + learner.shares.kept if isinstance(learner, Committee) else 1
    scores = 1 if learner.task.layout.ragged else int(learner.task.dim)
    if own > 1 and learner.rule.scored:
        return 8 * (features + scores + own)
    return 8 * (features + own * scores)
