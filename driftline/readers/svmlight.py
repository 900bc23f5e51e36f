"""Read ranking data in svmlight format: a line is ``grade qid:Q index:value ... # comment``.

Rows of one query are consecutive. ``qid`` says which rows these are, or a second file with one
query size per line; without either, all rows are one query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.readers.lines import Lines, finite, shorten, sparse_rows, whole
from driftline.typing import Inputs

__all__ = ["Ranking", "entries", "read_svmlight"]


class Ranking(NamedTuple):
    """Documents, grouped by query.

    Attributes
    ----------
    inputs : csr_array of float64
        One row per document.
    grades : array
        One grade per document: int64 where all are whole numbers, else float64.
    starts : array of int64
        The rows of query q are ``starts[q]:starts[q + 1]``.
    """

    inputs: Inputs
    grades: np.ndarray
    starts: np.ndarray


def read_svmlight(path: str | Path, query_path: str | Path | None = None) -> Ranking:
    """Return documents, grades and queries of an svmlight file, plain or compressed by gzip.

    If index 0 occurs in the file, indices are columns from 0, else from 1.
    """
    lines = Lines(path)
    grades: list[float] = []
    values: list[float] = []
    indices: list[int] = []
    row_starts = [0]
    starts = [0]
    query, seen = -1, set[int]()
    for line in lines:
        tokens = line.partition("#")[0].split()
        if not tokens:
            continue
        if ":" in tokens[0]:
            raise lines.error(f"expected a grade first, but saw {shorten(tokens[0])}")
        grades.append(lines.finite(tokens[0], "a grade"))
        has_query = len(tokens) > 1 and tokens[1].startswith("qid:")
        if has_query != bool(seen) and len(grades) > 1:
            raise lines.error("some lines have a qid and some have none, expected all or none")
        previous = query
        if has_query:
            query = lines.whole(tokens[1][4:], "qid")
        if query != previous:
            if query in seen:
                raise lines.error(f"qid {query} comes back, expected its rows to stand together")
            if seen:
                starts.append(len(grades) - 1)
            seen.add(query)
        own_indices, own_values = entries(tokens[2 if has_query else 1 :], lines.error)
        indices += own_indices
        values += own_values
        row_starts.append(len(indices))
    if not grades:
        raise InputError(f"{path} has no rows")
    if not indices:
        raise InputError(f"{path} has no index:value in any row")
    first = min(1, min(indices))
    columns = [index - first for index in indices]
    inputs = sparse_rows(values, columns, row_starts, max(columns) + 1)
    starts.append(len(grades))
    if query_path is not None:
        sizes = _read_sizes(query_path, path, len(grades))
        if seen and np.diff(starts).tolist() != sizes:
            raise InputError(f"{query_path} and the qids of {path} do not say the same queries")
        starts = [0, *np.cumsum(sizes).tolist()]
    return Ranking(inputs, _whole_if_possible(grades), np.array(starts, dtype=np.int64))


def entries(
    tokens: Sequence[str], error: Callable[[str], InputError]
) -> tuple[list[int], list[float]]:
    """Return indices and values of one line; ``error`` says where that is.

    >>> entries(["3:0.5", "1:2"], InputError)
    ([3, 1], [0.5, 2.0])
    """
    indices, values = [], []
    for token in tokens:
        index, colon, value = token.partition(":")
        if not (index and colon and value):
            raise error(f"expected index:value, but saw {shorten(token)}")
        indices.append(whole(index, "an index", error))
        values.append(finite(value, f"the value at index {index[:40]}", error))
    if len(set(indices)) < len(indices):
        twice = next(index for i, index in enumerate(indices) if index in indices[:i])
        raise error(f"index {twice} occurs twice")
    return indices, values


def _read_sizes(query_path: str | Path, path: str | Path, rows: int) -> list[int]:
    lines = Lines(query_path)
    sizes = []
    for line in lines:
        if line.strip():
            sizes.append(lines.whole(line.strip(), "a query size"))
            if sizes[-1] == 0:
                raise lines.error("a query size must be at least 1, but is 0")
    if sum(sizes) != rows:
        raise InputError(
            f"{query_path} has {len(sizes)} queries of {sum(sizes)} rows, but {path} has {rows}"
        )
    return sizes


def _whole_if_possible(grades: list[float]) -> np.ndarray:
    exact = np.array(grades, dtype=np.float64)
    if (np.abs(exact) < 2.0**53).all() and (exact == np.rint(exact)).all():
        return exact.astype(np.int64)
    return exact
