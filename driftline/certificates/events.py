"""The events of a recorded run whose labels came late."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from driftline.errors import InputError
from driftline.learner import Kept
from driftline.trace import Trace

__all__ = ["Events"]


class Events:
    """The events of a recorded run: which rounds were asked for and told, one after the other."""

    def __init__(self, trace: Trace):
        if trace.carried:
            raise InputError(
                f"labels of {trace.carried} rounds of an earlier run came in this one, and it has "
                "their steps without their inputs: play both as one run to certify it"
            )
        arrival, known = trace.arrival, trace.known
        assert arrival is not None and known is not None
        came = np.flatnonzero(arrival >= 0)
        #: The rounds in the order in which their labels came.
        self.order = came[np.argsort(arrival[came], kind="stable")]
        count, told = len(trace), len(self.order)
        if not told:
            raise InputError("no label came in this run: there is nothing to certify")
        if not np.array_equal(np.sort(arrival[came]), np.arange(told)):
            raise InputError("the arrivals of a trace are whole numbers from 0 on, each once")
        if (np.diff(known) < 0).any() or not 0 <= known[0] <= known[-1] <= told:
            raise InputError("the numbers of labels known before predictions do not fit arrivals")
        if (known[self.order] > np.arange(told)).any():
            raise InputError("a label came before its prediction")
        places = np.arange(count) + known  # of the events in which rounds are asked for
        self.asked = np.zeros(count + told, dtype=bool)
        self.asked[places] = True
        self.rounds = np.empty(count + told, dtype=np.int64)
        self.rounds[self.asked], self.rounds[~self.asked] = np.arange(count), self.order
        self._came = trace.arrived

    @cached_property
    def kept(self) -> Kept:
        """What a learner that does not see labels keeps of rounds until these come."""
        return Kept(self.rounds, self.asked, self._came)
