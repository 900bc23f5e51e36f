"""The rounds of a recorded run in the order in which they were asked for and told."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from driftline.committee import CommitteeTrace
from driftline.comparators.checking import Comparator
from driftline.errors import InputError
from driftline.learner import Account, Kept
from driftline.trace import Trace

__all__ = ["Order"]


class Order:
    """The events of a run: a round is asked for in one, and told in the same or a later one.

    ``rounds`` has the round of every event and ``asked`` whether it is only asked for; None where
    labels came at once. ``order`` are the rounds whose labels came, in that order. Learners take an
    order in place of a :class:`~driftline.learner.late.LateRun`.
    """

    def __init__(self, trace: Trace | CommitteeTrace):
        whole, first = trace, trace
        if isinstance(trace, CommitteeTrace):
            first = trace.members[0]
            for member in trace.members:
                if not (_same(member.arrival, trace.arrival) and _same(member.known, first.known)):
                    raise InputError(
                        "labels come to all members of a committee at once, and so to itself"
                    )
        self.came, self.late = whole.arrived, whole.arrival is not None
        self.order = self.rounds = np.arange(len(whole))
        self.asked: np.ndarray | None = None
        if self.late:
            self._lay_out(first)
        self._counts, self._reserve = whole.sample_weight, getattr(whole, "reserve", None)

    def _lay_out(self, trace: Any) -> None:
        if trace.carried:
            raise InputError(
                f"labels of {trace.carried} rounds of an earlier run came in this one, and it has "
                "their steps without their inputs: play both as one run to certify it"
            )
        arrival, known = trace.arrival, trace.known
        came = np.flatnonzero(self.came)
        self.order = came[np.argsort(arrival[came], kind="stable")]
        count, told = len(trace), len(came)
        if not told:
            raise InputError("no label came in this run: there is nothing to certify")
        if not np.array_equal(np.sort(arrival[came]), np.arange(told)):
            raise InputError("the arrivals of a trace are whole numbers from 0 on, each once")
        if (np.diff(known) < 0).any() or not 0 <= known[0] <= known[-1] <= told:
            raise InputError("the numbers of labels known before predictions do not fit arrivals")
        if (known[self.order] > np.arange(told)).any():
            raise InputError("a label came before its prediction")
        self.asked = np.zeros(count + told, dtype=bool)
        self.asked[np.arange(count) + known] = True
        self.rounds = np.empty(count + told, dtype=np.int64)
        self.rounds[self.asked], self.rounds[~self.asked] = np.arange(count), self.order

    @cached_property
    def tells(self) -> np.ndarray:
        """The events in which rounds are told."""
        return self.rounds if self.asked is None else np.flatnonzero(~self.asked)

    @property
    def waits(self) -> bool:
        """Whether a round was predicted before the label of an earlier one had come."""
        asked = self.asked
        if asked is None:
            return False
        return bool((asked[:-1] & asked[1:]).any()) or not self.came.all()

    def pieces(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield the ends of pieces of this many events at most; one ends with the last label."""
        count = len(self.rounds)
        edges = {*range(0, count, size), int(self.tells[-1]) + 1, count}
        yield from pairwise(sorted(edges))

    def of(self, column: np.ndarray) -> np.ndarray:
        """Return a column of rounds by event."""
        return column if self.asked is None else column[self.rounds]

    def starts(self, restarted: np.ndarray) -> np.ndarray:
        """Return new starts by event: each follows the label after which it was made."""
        made = np.zeros(len(self.rounds), dtype=bool)
        made[np.r_[0, self.tells[:-1] + 1][restarted[self.order]]] = True
        return made

    def told(self, comparator: Comparator) -> Comparator:
        """Return a comparator with its weights of rounds in the order of their labels."""
        return _InOrder(comparator, self.order, len(self.came)) if self.late else comparator

    # -- what learners ask for while they play events

    @cached_property
    def kept(self) -> Kept:
        """What a learner that does not see labels keeps of rounds until these come."""
        return Kept(self.rounds, self._asked, self.came)

    @cached_property
    def _account(self) -> Account:
        counts = np.ones(len(self.came)) if self._counts is None else self._counts
        needed = self.came if self._reserve is None else self.came | (self._reserve > 0.0)
        return Account(self.rounds, self._asked, counts, needed=needed)

    @property
    def _asked(self) -> np.ndarray:
        assert self.asked is not None
        return self.asked

    def settle(self, *given: Any) -> Any:
        """Return what members had paid for rounds: see :class:`~driftline.learner.Account`."""
        return self._account.settle(*given)


class _InOrder:
    """A comparator in the order of arrival: with its weights of the rounds in ``order``."""

    def __init__(self, comparator: Comparator, order: np.ndarray, rounds: int):
        ends, self._weights = [0], []
        for weights, stop in comparator.pieces(0, rounds):
            self._weights.append(weights)
            ends.append(stop)
        self._parts = np.searchsorted(np.array(ends[1:]), order, side="right")

    def pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the weights of arrivals ``start`` to ``stop``, each with where it ends."""
        parts = self._parts[start:stop]
        changes = (np.flatnonzero(np.diff(parts)) + 1 + start).tolist()
        for first, last in pairwise([start, *changes, stop]):
            yield self._weights[int(self._parts[first])], last


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
