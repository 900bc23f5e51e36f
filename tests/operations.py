"""Operations, counted: lines of Python, and comparisons and hashes of names."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path

PACKAGE = str(Path(__file__).parent.parent / "driftline")


class Count:
    """How many operations there were."""

    def __init__(self):
        self.total = 0


class Name(str):
    """A text that counts how often it is compared or hashed, also by code that is no Python."""

    counts: Count | None = None

    def __eq__(self, other):
        if Name.counts is not None:
            Name.counts.total += 1
        return str.__eq__(self, other)

    def __str__(self):
        return self

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        if Name.counts is not None:
            Name.counts.total += 1
        return str.__hash__(self)


@contextmanager
def counted():
    """Count operations of this thread: every line of the package that is begun, and names."""
    counts, before = Count(), sys.gettrace()

    def lines(frame, event, argument):
        counts.total += event == "line"
        return lines

    def calls(frame, event, argument):
        return lines if frame.f_code.co_filename.startswith(PACKAGE) else None

    Name.counts = counts
    sys.settrace(calls)
    try:
        yield counts
    finally:
        sys.settrace(before)
        Name.counts = None


def operations(work):
    """Return how many operations a call takes."""
    with counted() as counts:
        work()
    return counts.total


@contextmanager
def steps(connection):
    """Count the instructions of SQLite's machine."""
    counts = Count()

    def step():
        counts.total += 1
        return False

    connection.set_progress_handler(step, 1)
    try:
        yield counts
    finally:
        connection.set_progress_handler(None)
