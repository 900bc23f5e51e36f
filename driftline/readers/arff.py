"""Read ARFF files, dense or sparse, and the multi-label sets that Mulan keeps in them.

An ARFF file declares its attributes, numbers or one of a few listed values, and then has one row
per line: all values, separated by commas or tabs, or ``{index value, ...}`` with the nonzero ones.
In a sparse row an absent attribute is 0, so an absent nominal is the first value listed.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.readers.lines import Lines, read_bytes, shorten, sparse_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Arff", "read_arff", "read_mulan"]

SINGLE, DOUBLE = r"'((?:[^'\\]|\\.)*)'", r'"((?:[^"\\]|\\.)*)"'
CODE = re.compile(rf"""(?:[^'"%]+|{SINGLE}|{DOUBLE})*""")
ATTRIBUTE = re.compile(rf"""@attribute\s+(?:{SINGLE}|{DOUBLE}|([^\s,{{}}'"]+))\s*(.*)""", re.I)
ITEM = re.compile(rf"""(?:{SINGLE}|{DOUBLE}|([^\s,'"]*))(\s*,?\s*)""")
SPECIAL = re.compile(r"""['"?\t]""")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
MISSING = "a value is missing: fill it in, or leave the row out; neither is done here"


class Arff(NamedTuple):
    """The content of an ARFF file.

    Attributes
    ----------
    names : list of str
        One name per attribute.
    kinds : list
        None for a numeric attribute, else the tuple of its nominal values.
    values : array or csr_array of float64
        One row per instance; a nominal value is its index in ``kinds``.
    """

    names: list[str]
    kinds: list[tuple[str, ...] | None]
    values: np.ndarray | csr_array


def read_arff(path: str | Path) -> Arff:
    """Return the attributes and rows of an ARFF file, plain or compressed by gzip."""
    lines = Lines(path)
    names, kinds = read_header(lines)
    codes = [None if kind is None else {v: float(i) for i, v in enumerate(kind)} for kind in kinds]
    sparse: bool | None = None
    values: list[float] = []
    columns: list[int] = []
    starts = [0]
    for line in lines:
        text = without_comment(lines, line)
        if not text:
            continue
        if sparse is None:
            sparse = text[0] == "{"
        if sparse != (text[0] == "{"):
            raise lines.error("rows in {} and rows without are mixed, expected one kind")
        if sparse:
            places, row = split_sparse(lines, text, len(names))
            columns += places
        else:
            places, row = range(len(names)), split_dense(lines, text, len(names))
        for i, token in zip(places, row, strict=True):
            code = codes[i]
            if code is None:
                values.append(lines.finite(token, names[i]))
            elif token in code:
                values.append(code[token])
            else:
                among = shorten(", ".join(code))
                raise lines.error(f"{names[i]} must be one of {among}, but is {shorten(token)}")
        starts.append(len(values))
    if sparse is None:
        raise InputError(f"{path} has no rows after @data")
    if sparse:
        return Arff(names, kinds, sparse_rows(values, columns, starts, len(names)))
    return Arff(names, kinds, np.array(values, dtype=np.float64).reshape(-1, len(names)))


def read_header(
    lines: Lines, texts: bool = False
) -> tuple[list[str], list[tuple[str, ...] | None]]:
    """Return names and kinds of all attributes; the next lines are rows.

    With ``texts``, attributes of type string and date are taken as numeric ones are.
    """
    kinds: dict[str, tuple[str, ...] | None] = {}
    for line in lines:
        text = without_comment(lines, line)
        keyword = text.split(maxsplit=1)[0].lower() if text else "@relation"
        if keyword == "@data":
            if not kinds:
                raise lines.error("expected attributes before @data, but saw none")
            return list(kinds), list(kinds.values())
        if keyword == "@relation":
            continue
        match = ATTRIBUTE.fullmatch(text)
        if match is None:
            raise lines.error(f"expected '@attribute name type' or @data, but saw {shorten(text)}")
        name, kind = _unquote(match), match[4]
        if name in kinds:
            raise lines.error(f"attribute {shorten(name)} is declared twice")
        if kind.lower() in ("numeric", "real", "integer"):
            kinds[name] = None
        elif texts and kind.split(maxsplit=1)[:1] and kind.split()[0].lower() in ("string", "date"):
            kinds[name] = None
        elif kind[:1] == "{" and kind[-1:] == "}":
            kinds[name] = _nominal_values(lines, kind)
        else:
            raise lines.error(
                f"attribute {shorten(name)} has the type {shorten(kind)}, "
                "expected numeric, real, integer or {a, b, ...}"
            )
    raise InputError(f"{lines.path} has no @data, expected attributes, then @data, then rows")


def _nominal_values(lines: Lines, text: str) -> tuple[str, ...]:
    items = _split_items(text[1:-1].strip())
    values = tuple(value for value, _, _ in items)
    if any(gap == " " for _, _, gap in items) or ("", False) in [item[:2] for item in items]:
        raise lines.error(f"expected values with commas between, but saw {shorten(text)}")
    if len(set(values)) < len(values):
        raise lines.error(f"a value is listed twice in {shorten(text)}")
    return values


def without_comment(lines: Lines, line: str) -> str:
    """Return a line without its comment, which begins with a percent sign."""
    match = CODE.match(line)
    end = match.end() if match else 0
    if end < len(line) and line[end] != "%":
        raise lines.error(f"a quote is not closed in {shorten(line[end:])}")
    return line[:end].strip()


def _unquote(match: re.Match[str]) -> str:
    if match[3] is not None:
        return match[3]
    text = match[1] if match[1] is not None else match[2]
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), text)


def _split_items(text: str) -> list[tuple[str, bool, str]]:
    """Return values, whether they were quoted, and what follows: comma, tab, space or the end."""
    items, end, gap = [], 0, ","
    while end < len(text) or gap == ",":
        match = ITEM.match(text, end)
        assert match is not None  # quotes are closed, and ITEM matches all else
        end = match.end()
        gap = next((sign for sign in ",\t" if sign in match[4]), " " if end < len(text) else "")
        items.append((_unquote(match), match[3] is None, gap))
    return items


def split_dense(lines: Lines, text: str, count: int, missing: bool = False) -> list[str]:
    """Return the values of a row; missing ones are empty if they are allowed."""
    if SPECIAL.search(text) is None:
        row = [token.strip() for token in text.split(",")]
        if "" in row and not missing:
            raise lines.error(MISSING)
    else:
        items = _split_items(text)
        absent = [value in ("", "?") and not quoted for value, quoted, _ in items]
        if any(absent) and not missing:
            raise lines.error(MISSING)
        if any(gap == " " for _, _, gap in items):
            raise lines.error(f"expected values with commas between, but saw {shorten(text)}")
        row = ["" if gone else item[0] for gone, item in zip(absent, items, strict=True)]
    if len(row) != count:
        raise lines.error(f"expected {count} values, one per attribute, but saw {len(row)}")
    return row


def split_sparse(lines: Lines, text: str, count: int) -> tuple[Sequence[int], list[str]]:
    """Return the places and the values of a sparse row."""
    body = text[1:-1].strip()
    if text[-1] != "}":
        raise lines.error(f"a row that begins with {{ must end with }}, but ends {text[-20:]!r}")
    if SPECIAL.search(body) is None:
        pairs = [pair.split() for pair in body.split(",")] if body else []
        fits = all(len(pair) == 2 for pair in pairs)
    else:
        items = _split_items(body)
        if any(value == "?" and not quoted for value, quoted, _ in items):
            raise lines.error(MISSING)
        gaps = [gap.replace("\t", " ") for _, _, gap in items]
        fits = gaps == ([" ", ","] * len(items))[: len(items) - 1] + [""] and len(items) % 2 == 0
        pairs = [[a[0], b[0]] for a, b in zip(items[::2], items[1::2], strict=False)]
    if not fits:
        raise lines.error(f"expected {{index value, index value, ...}}, but saw {shorten(text)}")
    places = [lines.whole(pair[0], "an index") for pair in pairs]
    if len(set(places)) < len(places):
        raise lines.error("an index occurs twice")
    if places and max(places) >= count:
        raise lines.error(f"the {count} attributes have indices below {count}, saw {max(places)}")
    return places, [pair[1] for pair in pairs]


def read_mulan(
    arff_path: str | Path, xml_path: str | Path
) -> tuple[np.ndarray | csr_array, np.ndarray]:
    """Return inputs and labels of a multi-label set: an ARFF file and an XML list of its labels.

    Returns
    -------
    inputs : array or csr_array of float64
        All attributes that are not labels, in the order of the ARFF file.
    labels : array of int64
        Zeros and ones, one column per label, in the order of the XML file.
    """
    wanted = _read_label_names(xml_path)
    names, kinds, values = read_arff(arff_path)
    position = {name: i for i, name in enumerate(names)}
    for name in wanted:
        if name not in position:
            raise InputError(f"{xml_path} lists {shorten(name)}, no attribute of {arff_path}")
    columns = [position[name] for name in wanted]
    rest = sorted(set(range(len(names))) - set(columns))
    if not rest:
        raise InputError(f"all attributes of {arff_path} are labels, expected inputs too")
    labels = values[:, columns]
    labels = labels if isinstance(labels, np.ndarray) else labels.toarray()
    for i, column in zip(columns, labels.T, strict=True):
        kind = kinds[i]
        if kind is not None and not set(kind) <= {"0", "1"}:
            raise InputError(
                f"{arff_path}: label {names[i]} must have values 0 and 1, but has {kind}"
            )
        if kind is not None:
            column[:] = np.array(kind, dtype=np.float64)[column.astype(np.int64)]
        bad = np.flatnonzero((column != 0.0) & (column != 1.0))
        if bad.size:
            raise InputError(
                f"{arff_path}: label {names[i]} must be 0 or 1, but is {column[bad[0]]:g} in row "
                f"{bad[0] + 1} after @data"
            )
    return values[:, rest], labels.astype(np.int64)


def _read_label_names(path: str | Path) -> list[str]:
    content = read_bytes(path)
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise InputError(f"{path} is no XML list of labels: {error}") from error
    # The tag of an element in a namespace is written {namespace}tag.
    found = [node.get("name") for node in root.iter() if node.tag.rpartition("}")[2] == "label"]
    names = [name for name in found if name]
    if not names or len(names) < len(found):
        raise InputError(f'{path} must list labels as <label name="..."/>, saw {found[:3]}')
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"{path} lists {shorten(twice)} twice")
    return names
