r"""Spans in sequences of BIO tags, and how well they are found.

A span of kind k begins at a tag ``B-k`` and goes on over tags ``I-k``; as in the scores of CoNLL, a
tag ``I-k`` after another kind, or after ``O``, begins one, too. With c spans that are found
exactly, of p predicted ones and t true ones,

.. math:: \mathrm{precision} = c / p, \qquad \mathrm{recall} = c / t, \qquad F_1 = 2c / (p + t).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from driftline.errors import InputError

__all__ = ["Span", "SpanScores", "span_scores", "spans"]


class Span(NamedTuple):
    """A kind, the first position, and the one behind the last."""

    kind: str
    start: int
    stop: int


class SpanScores(NamedTuple):
    """Shares of predicted and of true spans that are exact, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def spans(tags: Iterable[str]) -> list[Span]:
    """Return the spans of one sequence of BIO tags.

    >>> spans(["B-NP", "I-NP", "O", "B-VP", "B-NP"])[:2]
    [Span(kind='NP', start=0, stop=2), Span(kind='VP', start=3, stop=4)]
    """
    found: list[Span] = []
    kind, start, stop = "", 0, 0
    for stop, tag in enumerate([*tags, "O"]):  # noqa: B007
        head, _, own = str(tag).partition("-")
        if head not in ("B", "I", "O") or (head == "O") == bool(own):
            raise InputError(f"tags of spans are O, B-kind or I-kind, but one is {str(tag)!r:.40}")
        if kind and (head != "I" or own != kind):
            found.append(Span(kind, start, stop))
            kind = ""
        if own and not kind:
            kind, start = own, stop
    return found


def span_scores(true: Sequence[Iterable[str]], predicted: Sequence[Iterable[str]]) -> SpanScores:
    """Return precision, recall and F1 of the spans of many sequences together.

    Where there are no spans at all, they are 0.

    >>> span_scores([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-NP"]])
    SpanScores(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """
    if len(true) != len(predicted):
        raise InputError(f"{len(true)} sequences have {len(predicted)} predictions")
    exact, made, wanted = 0, 0, 0
    for t, (tags, others) in enumerate(zip(true, predicted, strict=True)):
        left, right = list(tags), list(others)
        if len(left) != len(right):
            raise InputError(f"sequence {t} has {len(left)} tags, but its prediction {len(right)}")
        own, found = set(spans(left)), set(spans(right))
        exact, made, wanted = exact + len(own & found), made + len(found), wanted + len(own)
    precision, recall = exact / max(1, made), exact / max(1, wanted)
    return SpanScores(precision, recall, 2.0 * exact / max(1, made + wanted))
