"""An exception at any line of an operation, and what it leaves behind."""

from __future__ import annotations

import linecache
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import driftline as dl
from driftline.state import archive

PACKAGE = str(Path(dl.__file__).parent)
#: Code that is run once in a process, and lines of another number after that.
ONCE = str(Path(PACKAGE) / "kernels" / "compile")


class Operation(NamedTuple):
    """An operation on a learner that is prepared for it.

    ``prepare`` is given a new learner and returns what ``play`` is given beside it. With ``once``
    the operation is refused once it is done.
    """

    make: Callable[[], Any]
    prepare: Callable[[Any], Any]
    play: Callable[[Any, Any], object]
    once: bool = False


class Cut:
    """Raises an error at one line of the package, which is counted from 1; 0 counts them all."""

    def __init__(self, line: int, error: type[BaseException]):
        self.line, self.error, self.lines, self.where = line, error, 0, ""

    def __call__(self, frame: Any, event: str, arg: object) -> Any:
        name = frame.f_code.co_filename
        return self._at if name.startswith(PACKAGE) and not name.startswith(ONCE) else None

    def _at(self, frame: Any, event: str, arg: object) -> Any:
        if event == "line":
            self.lines += 1
            if self.lines == self.line:
                name, number = frame.f_code.co_filename, frame.f_lineno
                self.source = linecache.getline(name, number).strip()
                self.where = f"{Path(name).relative_to(PACKAGE)}:{number} {self.source}"
                raise self.error("cut")
        return self._at

    def through(self, call: Callable[[], object]) -> bool:
        """Call a function; return whether the error came out of it, or a refusal made of it."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except (self.error, dl.InputError):
            assert self.where, "refused"
            return True
        finally:
            sys.settrace(before)
        return False


def state_of(learner: Any) -> bytes:
    """Return the state of a learner as it is saved."""
    return archive.packed(*learner.to_saved())


def is_free(learner: Any) -> bool:
    """Say whether other threads may use a learner."""
    turn = getattr(learner, "_turn", None)
    lock, free = learner._lock if turn is None else turn.lock, []

    def take() -> None:
        free.append(lock.acquire(blocking=False))
        if free[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return free[0] and (turn is None or turn.player == 0)


def attack(
    operation: Operation, error: type[BaseException], lines: Callable[[int], Iterable[int]]
) -> Counter[str]:
    """Raise an error at some lines of an operation, each in a new learner; return what was left.

    The state must be that of before the operation or after it, and in the former case the
    operation, when it is repeated, must lead to the latter.
    """

    def ready() -> tuple[Any, Any]:
        learner = operation.make()
        return learner, operation.prepare(learner)

    learner, given = ready()
    operation.play(learner, given)  # compiled and imported from here on
    learner, given = ready()
    before = state_of(learner)
    count = Cut(0, error)
    assert not count.through(lambda: operation.play(learner, given))
    after, found = state_of(learner), Counter(lines=count.lines)
    for line in lines(count.lines):
        learner, given = ready()
        cut = Cut(line, error)
        if not cut.through(partial(operation.play, learner, given)):
            found["finished"] += 1
            assert state_of(learner) == after, cut.where
            continue
        # No signal is handled between the body of a `with` and its end, where a trace can raise.
        assert cut.source.startswith("with ") or is_free(learner), f"busy after {cut.where}"
        try:
            state = state_of(learner)
        except BaseException as unreadable:
            raise AssertionError(f"unreadable after {cut.where}") from unreadable
        found["before" if state == before else "after"] += 1
        assert state in (before, after), f"torn at {cut.where}"
        try:
            if state != after:
                operation.play(learner, given)
        except dl.InputError as refused:
            raise AssertionError(f"refused after {cut.where}") from refused
        assert state_of(learner) == after, f"another state after {cut.where}"
        if operation.once:
            with pytest.raises(dl.InputError):
                operation.play(learner, given)
            assert state_of(learner) == after
    return found


def some_of(seed: int, most: int) -> Callable[[int], Iterable[int]]:
    """Return a function that draws at most so many lines of an operation."""

    def drawn(count: int) -> Iterable[int]:
        places = np.random.default_rng(seed).permutation(count)[:most]
        return sorted((places + 1).tolist())

    return drawn
