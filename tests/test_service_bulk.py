"""Rows that are read as they come: however they are cut, and in time linear in their bytes."""

import asyncio
import csv
import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.app.service.bulk import LINE, rows_of
from driftline.app.service.requests import RefusedError


def read(parts, kind="csv"):
    """Return the rows that parts have, or how they are refused."""

    async def given_parts():
        for part in parts:
            yield part

    async def rows():
        return [row async for row in rows_of(given_parts(), kind)]

    try:
        return asyncio.run(rows())
    except RefusedError as error:
        return error.status, str(error)


def cut(content, places):
    """Return the parts of some bytes."""
    places = sorted(place % (len(content) + 1) for place in places)
    ends = [*places, len(content)]
    return [content[a:b] for a, b in zip([0, *places], ends, strict=True)]


PLACES = st.lists(st.integers(0, 10_000), max_size=20)
CELLS = st.text(st.sampled_from('ab "\n,é\ufeff'), max_size=6)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=6), PLACES, st.sampled_from(["\n", "\r\n"]))
def test_rows_are_those_of_a_reader_of_the_whole(table, places, end):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerows([("x", "y"), *table])
    made = read(cut(out.getvalue().encode(), places))
    whole = csv.DictReader(io.StringIO(out.getvalue(), newline=""))
    assert made == list(whole)


@given(st.text(st.sampled_from('ab"\n,\r'), max_size=60), PLACES, st.sampled_from(["csv", "json"]))
def test_any_parts_are_read_as_the_whole(text, places, kind):
    content = text.encode()
    assert read(cut(content, places), kind) == read([content], kind)


def test_a_byte_order_mark_is_left_out_at_the_start_only():
    assert read(["\ufeffx,y\n\ufeff1,2\n".encode()]) == [{"x": "\ufeff1", "y": "2"}]


@pytest.mark.parametrize("parts", [[b"x\n" * (LINE // 2 + 1)], [b"x\n", b"y" * 999] * 2000])
def test_a_line_is_bounded_with_all_that_its_quotes_hold(parts):
    assert read([b'"', *parts]) == (413, f"a line may have {LINE} bytes")


class Counted(bytes):
    """Bytes that count how many of them were looked at."""

    seen = 0

    def split(self, *given):
        Counted.seen += len(self)
        return [Counted(part) for part in super().split(*given)]

    def count(self, *given):
        Counted.seen += len(self)
        return super().count(*given)

    def __radd__(self, before):
        return Counted(before + bytes(self))


def steps(parts):
    """Return how many lines of Python are run to read parts, and how many bytes are looked at."""
    lines, Counted.seen = 0, 0

    def trace(frame, event, _):
        nonlocal lines
        lines += event == "line" and frame.f_code.co_filename.endswith("bulk.py")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read([Counted(part) for part in parts])
    finally:
        sys.settrace(before)
    return lines, Counted.seen


@pytest.mark.parametrize(
    "parts_of",
    [
        lambda n: [b'x\n"', *[b"a"] * n],
        lambda n: [b'x\n"', *[b"\n"] * n],
        lambda n: [b'x\n"', b"\n" * n],
        lambda n: [b'x\n"', *[b"\n" * 50] * (n // 50)],
        lambda n: [b"x\n", *[b'"', b'"\n'] * n],
    ],
    ids=["bytes", "line ends", "one part", "parts", "quotes"],
)
def test_reading_takes_time_linear_in_the_bytes(parts_of):
    few, many = steps(parts_of(1000)), steps(parts_of(2000))
    assert many[0] < 2.5 * few[0]
    assert many[1] < 2.5 * few[1]
