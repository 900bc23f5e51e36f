"""The values of texts in a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["FLAGS", "amount", "are_in_order", "decimal_comma", "is_date", "is_missing", "number"]

#: Texts for missing values, in lower case.
MISSING = {"", "?", "na", "n/a", "nan", "null", "none"}
FLAGS = {"true": 1.0, "false": 0.0}
DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?[./-]\d\d?[./-](\d\d|\d{4})([T ].*)?|\d\d?:\d\d(:\d\d.*)?"
)
#: A date, and perhaps a time, whose order is that of its text.
ORDERED = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
COMMA = re.compile(r"[+-]?\d+,\d+")
#: A currency or a percentage, with a sign between thousands or without.
AMOUNT = re.compile(
    r"[+-]?\s?([$€£]\s?)?[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?\s?([$€£%]|USD|EUR|GBP)?"
)
UNITS = re.compile(r"[\s$€£%,]|USD|EUR|GBP")


def is_missing(text: str) -> bool:
    """Return whether a text stands for a missing value.

    >>> [is_missing(text) for text in ("", "NA", " ? ", "0")]
    [True, True, True, False]
    """
    return text.strip().lower() in MISSING


def number(text: str, decimal: str = ".") -> float | None:
    """Return the number that a text stands for, None if it is not a number; infinity is one.

    With a decimal comma, a text with a point is not a number: it may separate thousands.

    >>> number("1e3"), number("1_000"), number("1,5"), number("1,5", decimal=",")
    (1000.0, None, None, 1.5)
    >>> number("1.500", decimal=",") is None
    True
    """
    if "_" in text or (decimal != "." and "." in text):
        return None
    try:
        return float(text if decimal == "." else text.replace(decimal, "."))
    except ValueError:
        return None


def amount(text: str, decimal: str = ".") -> float | None:
    """Return the number of an amount such as $1,200 or 12%, None if a text is neither.

    A comma parts thousands where a unit says that it is an amount; alone it may be a decimal one.

    >>> amount("$1,200.50"), amount("12 %"), amount("-3"), amount("1.200,5 €", ",")
    (1200.5, 12.0, -3.0, 1200.5)
    >>> amount("1,200") is None, amount("12 apples") is None
    (True, True)
    """
    value = number(text, decimal)
    if value is not None:
        return value
    text = text.strip()
    if decimal == ",":
        text = text.translate(str.maketrans(".,", ",."))
    if not AMOUNT.fullmatch(text) or not UNITS.search(text.replace(",", "").strip()):
        return None
    return number(UNITS.sub("", text))


def is_date(text: str) -> bool:
    """Say whether a text looks like a date or a time.

    >>> is_date("2024-05-01"), is_date("1.5.2024"), is_date("12:30"), is_date("1.5")
    (True, True, True, False)
    """
    return DATE.fullmatch(text.strip()) is not None


def are_in_order(texts: Sequence[str]) -> bool:
    """Say whether texts are dates or times in order, as far as texts tell: 2024-05-01 12:30.

    >>> are_in_order(["2024-05-01", "2024-05-01", "2024-05-02"])
    True
    >>> are_in_order(["2024-05-02", "2024-05-01"]), are_in_order(["1.5.2024", "2.5.2024"])
    (False, False)
    """
    dates = len(texts) > 1 and texts[0] != texts[-1] and all(map(ORDERED.fullmatch, texts))
    return dates and all(a <= b for a, b in pairwise(texts))


def decimal_comma(text: str) -> bool:
    """Say whether a text looks like a number with a decimal comma."""
    return COMMA.fullmatch(text.strip()) is not None
