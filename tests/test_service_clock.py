"""The clock of the log, whatever wall clock and monotonic clock do."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from driftline.app.service.clock import DAY, HOUR, LogClock
from driftline.app.service.writer import Limits
from tests.service import call, client, serving, within

START = 20_000 * DAY
#: How far both clocks go on, and how far the wall clock jumps before.
PASSED = st.sampled_from([0, 1, 1000, 60_000, 20 * 60_000, HOUR, HOUR + 1, 5 * HOUR, 3 * DAY])
JUMPS = st.sampled_from([0, 0, 0, 1, -1, 60_000, -60_000, HOUR, -HOUR, 400 * DAY, -400 * DAY])


class Clocks:
    def __init__(self, last=0, wall=START):
        self.wall, self.monotonic, self.written = wall, 77, []
        own = (lambda: self.wall, lambda: self.monotonic)
        self.log = LogClock(last, *own, write=self.written.append)

    def go(self, passed, jump=0):
        self.wall += passed + jump
        self.monotonic += passed
        self.log.settle()
        return self.log()


@given(st.lists(st.tuples(PASSED, JUMPS), max_size=30), st.sampled_from([0, START, START + DAY]))
def test_time_goes_on_like_the_monotonic_clock_give_or_take_an_hour(moves, last):
    clocks = Clocks(last)
    began = before = clocks.log()
    for passed, jump in moves:
        now = clocks.go(passed, jump)
        assert now >= before + passed
        assert now - began <= clocks.monotonic - 77 + HOUR
        before = now


@given(st.lists(st.tuples(PASSED, JUMPS), max_size=30))
def test_the_clock_is_held_after_every_large_jump(moves):
    clocks = Clocks()
    for passed, jump in moves:
        clocks.go(passed, jump)
        if abs(jump) > 2 * HOUR:
            assert "jumped" in clocks.log.held


def test_a_jump_is_waited_out_and_never_followed():
    clocks = Clocks()
    began = clocks.log()
    assert clocks.go(1000, 400 * DAY) == began + 1000
    assert clocks.log.held == "the wall clock jumped forward by 400.0 days"
    assert clocks.go(HOUR // 2) == began + 1000 + HOUR // 2
    assert clocks.log.held
    clocks.go(0, -400 * DAY)  # set right: the hour begins again
    clocks.go(HOUR - 1)
    assert clocks.log.held
    assert clocks.go(1) == clocks.wall
    assert not clocks.log.held
    assert clocks.go(1000, 60_000) == clocks.wall  # a small step is followed


def test_a_start_long_after_the_last_record_waits_for_an_hour():
    clocks = Clocks(last=START - 3 * DAY)
    assert clocks.log.held == "the wall clock is 3.0 days after the last record"
    assert clocks.go(HOUR - 1) == START - 3 * DAY + HOUR
    assert clocks.go(1) == clocks.wall
    assert not clocks.log.held


def test_rows_of_the_first_hour_after_a_long_rest_are_as_old_as_they_are():
    """Their times are 40 days too small, which is remembered, and before it counts."""
    last = START - 40 * DAY
    clocks = Clocks(last)
    asked = clocks.go(HOUR // 2)
    assert asked == last + 1 + HOUR // 2
    clocks.go(HOUR // 2)
    assert clocks.written[0][1] == [(last, 0, 0)]
    known = clocks.written[-1]
    shifts = known[1]
    assert clocks.log.shifts == shifts == [(last, last + 1 + HOUR, 40 * DAY - 1)]
    assert clocks.log.true(asked) == START + HOUR // 2
    again = LogClock(clocks.log(), lambda: clocks.wall, lambda: clocks.monotonic, known)
    for log in (clocks.log, again):
        assert log.before(30 * DAY) == last + 1  # rows of before are old enough
    clocks.go(29 * DAY)
    assert clocks.log.before(30 * DAY) <= asked
    clocks.go(DAY)
    assert clocks.log.before(30 * DAY) > asked


def test_rows_of_a_process_that_was_held_are_not_older_for_the_next_one():
    """Its clock was wrong, and the next one's is right, within a day of the last record."""
    clocks = Clocks(last=START - HOUR, wall=START - 400 * DAY)
    asked = clocks.go(1000)
    again = LogClock(asked, lambda: START + 1000, lambda: 0, clocks.written[-1], len)
    assert again() == asked + 1
    assert again.settle() == ""
    assert (again(), again.true(asked)) == (START + 1000, START + 999)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(1, 9)), max_size=4))
def test_all_records_before_a_moment_are_old_enough(parts):
    shifts, end = [], 0
    for rest, held, by in parts:
        low, high = end + rest, end + rest + held
        shifts.append((low, high, by))
        end = high + by
    clock = LogClock(0, lambda: end + 5, lambda: 0, (0, shifts))
    for age in range(end + 6):
        before = clock.before(age)
        for moment in range(end + 5):
            gone = any(high < moment <= high + by for _, high, by in shifts)  # no record has it
            if not gone:
                assert (moment < before) == (clock.true(moment) < end + 5 - age)


def test_a_rest_without_records_is_no_gap():
    clocks = Clocks(last=START)
    clocks.go(3 * DAY)
    again = LogClock(START, lambda: clocks.wall, lambda: 0, clocks.written[-1])
    assert (again(), again.held) == (clocks.wall, "")


@pytest.mark.parametrize("gap", [0, DAY])
def test_a_start_soon_after_the_last_record_waits_for_nothing(gap):
    clocks = Clocks(last=START - gap)
    assert (clocks.log(), clocks.log.held) == (START, "")


def test_a_log_that_is_ahead_goes_on_from_there():
    """Its last record came while the clock was 400 days ahead; time does not stand still."""
    clocks = Clocks(last=START + 400 * DAY)
    assert "before the last record" in clocks.log.held
    assert clocks.go(5 * HOUR) == START + 400 * DAY + 5 * HOUR + 1
    assert not clocks.log.held


def test_a_service_whose_clock_is_wrong_for_a_request(tmp_path, capfd):
    """Nothing expires, nothing is deleted, and the log's time does not go there."""
    limits = Limits(expire_seconds=3600.0, keep_seconds=7200.0, snapshot_seconds=0.05)
    clocks = Clocks()
    with serving(tmp_path / "data", limits=limits) as (address, server):
        own = client(address)
        own.create("m", "y", columns={"x": "number"}, learner="fast")
        began = server.machine.at
        clocks = Clocks(last=began, wall=began)
        server.writer._clock = server.machine.clock = clocks.log
        own.predict("m", [{"x": i} for i in range(10)], id=[f"a{i}" for i in range(10)])
        own.learn("m", [{"x": i} for i in range(10)], ["yes", "no"] * 5)
        while len(within(server, server.log.snapshots).get(1, ())) < 2:
            pass
        clocks.go(1000, 400 * DAY)

        def tidied():
            commits = server.writer.commits
            server.writer._next_expiry = 0.0
            own.learn("m", {"x": 1.0}, "yes")
            own.learn("m", {"x": 1.0}, "yes")
            assert server.writer.commits >= commits + 2
            return own.model("m")

        made = tidied()
        assert (made["outstanding"], server.log.trimmed) == (10, 0)
        assert made["at"] == began + 1000
        assert b"driftline_clock_held 1.0" in call(address, "GET", "/metrics")[1]
        assert "jumped forward by 400.0 days" in capfd.readouterr().err
        clocks.go(1000, -400 * DAY)
        clocks.go(1000)
        assert own.label("m", "a0", "yes")["learned"]
        clocks.go(HOUR)
        assert tidied()["outstanding"] == 0  # which is old enough by now
        assert b"driftline_clock_held 0.0" in call(address, "GET", "/metrics")[1]
        assert own.model("m")["at"] == clocks.wall
