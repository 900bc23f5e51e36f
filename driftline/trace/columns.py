"""Columns of a record of rounds: when each is known, how they are checked, and how joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["ASKED", "CAME", "TOLD", "Column", "checked", "column", "joined", "of_rounds", "places"]

#: When a round has its entry: when it is predicted; then, but for its label; when that comes.
ASKED, CAME, TOLD = "asked", "came", "told"


class Column(NamedTuple):
    """When a round has its entry, of which type, and in how many dimensions.

    ``types`` and ``ndims`` are all that there may be, the last of them the usual one.
    """

    when: str
    types: tuple[npt.DTypeLike, ...] = (np.float64,)
    ndims: tuple[int, ...] = (1,)


def column(
    arrays: Mapping[str, np.ndarray],
    name: str,
    kind: Column,
    rounds: int | None = None,
    came: slice | np.ndarray = slice(None),
) -> np.ndarray:
    """Return a column of a trace, if its type, its length and its entries are valid.

    ``came`` are the rounds whose label has come; only these need finite numbers of their labels.
    """
    if name not in arrays:
        raise InputError(f"there is no column {name!r}")
    array = arrays[name]
    if array.dtype not in kind.types or array.ndim not in kind.ndims:
        raise InputError(
            f"the column {name!r} must be {np.dtype(kind.types[-1])} in {kind.ndims[-1]} "
            f"dimensions, but is {array.dtype} of shape {array.shape}"
        )
    if rounds is not None and len(array) != rounds:
        raise InputError(
            f"columns differ in length: {name!r} has {len(array)} rounds, not {rounds}"
        )
    known = array if kind.when == ASKED else array[came]
    if array.dtype.kind == "f" and not np.isfinite(known).all():
        raise InputError(f"the column {name!r} must have finite numbers only")
    return array


def checked(
    arrays: Mapping[str, np.ndarray], kinds: Mapping[str, Column], rounds: int, *optional: str
) -> dict[str, np.ndarray]:
    """Return columns by name, if all are valid; those that are ``optional`` may be missing."""
    came = places(arrays, rounds)
    names = [name for name in kinds if name in arrays or name not in optional]
    return {name: column(arrays, name, kinds[name], rounds, came) for name in names}


def places(arrays: Mapping[str, np.ndarray], rounds: int) -> slice | np.ndarray:
    """Return the rounds whose label has come."""
    if "arrival" not in arrays:
        return slice(None)
    return np.flatnonzero(column(arrays, "arrival", Column(ASKED, (np.int64,)), rounds) >= 0)


def of_rounds(
    columns: Mapping[str, np.ndarray], kinds: Mapping[str, Column], late: Any
) -> dict[str, np.ndarray]:
    """Return the columns of a run's rounds from those of its events; NaN without a label."""
    asked, told = late.ask_events, late.tell_events[late.carried :]
    came, made = told >= 0, {}
    for name, own in columns.items():
        when = kinds[name].when
        rows = own[told] if when == TOLD else own[asked]
        if when != ASKED:
            shape = len(came), *[1] * (own.ndim - 1)
            rows = np.where(came.reshape(shape), rows, False if own.dtype == bool else np.nan)
        made[name] = rows
    return made


def joined(batches: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the concatenated columns of consecutive batches; rows are padded by -1."""
    made = {}
    if any(batch.keys() != batches[0].keys() for batch in batches):
        raise InputError("traces with different columns, such as sample weights, cannot be joined")
    for name, first in batches[0].items():
        parts = [columns[name] for columns in batches]
        if name.endswith("prediction") and first.ndim == 2:
            width = max(part.shape[1] for part in parts)
            short = [((0, 0), (0, width - part.shape[1])) for part in parts]
            pairs = zip(parts, short, strict=True)
            parts = [np.pad(part, by, constant_values=-1) for part, by in pairs]
        made[name] = np.concatenate(parts)
    return made
