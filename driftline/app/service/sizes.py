"""How large models and answers may be: it is said before the memory is taken."""

from __future__ import annotations

from collections.abc import Sequence

from driftline.app.runs import TableModel
from driftline.app.tables.labels.classes import MOST_CLASSES
from driftline.errors import InputError

__all__ = ["COLUMNS", "MEMORY", "check_columns", "check_model", "check_rows", "check_size"]

#: The most columns of a model by name.
COLUMNS = 4096
#: The most bytes of a learner's state, and of the features and answers of a request.
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
        what = f"{len(model.columns):,} columns ({what})"
    if outcomes > MOST_CLASSES:
        raise InputError(
            f"a model has {MOST_CLASSES:,} {model.task} at most, but this one would have "
            f"{outcomes:,}"
        )
    what += f" and {outcomes:,} {model.task}" * bool(outcomes)
    check_size(model.state_bytes(classes), memory, what)


def check_rows(model: TableModel, rows: int, memory: int) -> None:
    """Refuse rows whose features and answers together would be too large."""
    names: Sequence[str] = model.classes
    each = 8 * model.features + sum(map(len, names)) + CHANCE * len(names)
    if rows > 1 and rows * each > memory:
        raise InputError(
            f"{rows:,} rows of {model.features:,} features and {len(names):,} {model.task} take "
            f"some {megabytes(rows * each):,} MB with their answers: send "
            f"{max(1, memory // each):,} at a time"
        )
