"""Read label ranking data: a row is numbers, then a ranking of all items such as ``b>a>c``."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np

from driftline.errors import InputError
from driftline.readers.lines import Lines, shorten

__all__ = ["read_label_ranking"]


def read_label_ranking(path: str | Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return inputs, ranks and items of a CSV file with a header, plain or compressed by gzip.

    Returns
    -------
    inputs : array of float64
        One row per ranking: all columns but the last.
    ranks : array of int64
        ``ranks[t, i]`` is the rank of item i in row t, and 0 is the best.
    items : list of str
        The names of the items, sorted with L2 before L10.
    """
    lines = Lines(path)
    header: list[str] = []
    items: list[str] = []
    inputs: list[list[float]] = []
    orders: list[list[int]] = []
    try:
        for fields in csv.reader(lines, strict=True):
            if not fields or fields == [""]:
                continue
            if not header:
                header = _check_header(lines, fields)
                continue
            if len(fields) != len(header):
                raise lines.error(f"expected {len(header)} columns, but saw {len(fields)}")
            inputs.append([lines.finite(*pair) for pair in zip(fields[:-1], header, strict=False)])
            ranking = [item.strip() for item in fields[-1].split(">")]
            if len(ranking) < 2 or "" in ranking:
                raise lines.error(f"expected a ranking such as a>b, saw {shorten(fields[-1])}")
            if len(set(ranking)) < len(ranking):
                raise lines.error(f"an item is repeated in {shorten(fields[-1])}")
            if not items:
                items = sorted(ranking, key=_natural)
                place = {item: i for i, item in enumerate(items)}
            if place.keys() != set(ranking):
                raise lines.error(
                    f"expected a ranking of {shorten(', '.join(items))} as in the first row, but "
                    f"saw {shorten(fields[-1])}"
                )
            orders.append([place[item] for item in ranking])
    except csv.Error as error:
        raise lines.error(f"expected comma-separated values: {error}") from error
    if not orders:
        raise InputError(f"{path} has no rows, expected a header and then a ranking per line")
    return np.array(inputs, dtype=np.float64), np.argsort(orders, axis=1).astype(np.int64), items


def _check_header(lines: Lines, fields: list[str]) -> list[str]:
    if len(fields) < 2 or ">" in fields[-1]:
        raise lines.error(
            f"expected a header: names of features, then of the ranking; saw "
            f"{shorten(','.join(fields))}"
        )
    return fields


def _natural(name: str) -> tuple[list[str | int], str]:
    """Return a sort key that compares digits as numbers.

    >>> sorted(["L10", "L2", "L", "a"], key=_natural)
    ['L', 'L2', 'L10', 'a']
    """
    # Texts and numbers alternate, beginning with a text, so that equal types are compared.
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], name
