"""Alarms: the rounds in which the expected loss of a learner was seen to rise.

There is one definition for traces, committees, estimators, runs and reports: an alarm of
``Cusum()`` over the learner's expected target losses, as shares of the largest there is; of a
committee, over the weighted mean of its members' expected losses, which is what drawing one of
them would cost. Losses are taken without sample weights, and rounds of weight 0 are left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftline.detectors.cusum import Cusum, page
from driftline.errors import InputError
from driftline.kernels import ALARMS, helper, kernel
from driftline.state import Stateful

__all__ = ["AlarmLog", "alarms_of", "note", "skip"]

#: A log begins with how many rounds it has seen, the detector's memory, and how many alarms there
#: were; then come the last of these, each in the place of its number modulo their most.
ROUNDS, MEMORY, FOUND, HEAD, MOST = 0, 1, 4, 5, 1000

#: The detector that gives alarms.
DETECTOR = Cusum()
PARAMS = np.array(DETECTOR.params())


@helper
def note(loss, params, log):
    """Tell the detector of a round, whose loss is clipped to 0 to 1, and note an alarm."""
    if page(min(max(loss, 0.0), 1.0), params, log[MEMORY:FOUND]):
        log[HEAD + int(log[FOUND]) % MOST] = log[ROUNDS]
        log[FOUND] += 1.0
        for i in range(MEMORY, FOUND):
            log[i] = 0.0
    log[ROUNDS] += 1.0


@helper
def skip(log):
    """Count a round that the detector is not told of."""
    log[ROUNDS] += 1.0


@kernel(ALARMS)
def note_all(losses, params, log):
    """Do so for many rounds."""
    for t in range(losses.size):
        note(losses[t], params, log)


class AlarmLog(Stateful):
    """Alarms so far, with the state of the detector; the last thousand are kept.

    >>> log = AlarmLog()
    >>> log.add(np.r_[np.tile([0.0, 0.0, 0.0, 0.0, 1.0], 40), np.ones(20), np.zeros(40)])
    >>> log.rounds
    array([204])
    """

    _learned = ("state",)

    def __init__(self) -> None:
        self.state = np.zeros(HEAD + MOST)

    def add(self, losses: npt.ArrayLike) -> None:
        """Tell of some rounds: their expected losses, as shares of the largest there is."""
        note_all.compiled(np.ascontiguousarray(losses, dtype=np.float64), PARAMS, self.state)

    @property
    def rounds(self) -> np.ndarray:
        """The rounds with an alarm, counted from the first one told of."""
        found = int(self.state[FOUND])
        places = np.arange(max(0, found - MOST), found) % MOST
        return self.state[HEAD + places].astype(np.int64)

    @property
    def count(self) -> int:
        """How many alarms there were; more than a thousand are counted, but not kept."""
        return int(self.state[FOUND])

    def to_array(self) -> np.ndarray:
        """Return all of it as a vector without empty places."""
        return self.state[: HEAD + min(self.count, MOST)].copy()

    @classmethod
    def from_array(cls, state: np.ndarray, rounds: int) -> AlarmLog:
        """Return the log of a learner after so many rounds, if it can be one."""
        log, size = cls(), np.size(state)
        good = isinstance(state, np.ndarray) and state.ndim == 1 and state.dtype == np.float64
        good = good and HEAD <= size <= HEAD + MOST
        good = good and bool(np.isfinite(state).all() and (state >= 0.0).all())
        if good:
            whole = np.r_[state[[ROUNDS, MEMORY, FOUND]], state[HEAD:]]
            good = bool((whole == np.rint(whole)).all()) and state[ROUNDS] <= rounds
            good = good and state[MEMORY] <= state[ROUNDS] and state[MEMORY + 1] <= state[MEMORY]
            good = good and state[FOUND] <= rounds and bool((state[HEAD:] < state[ROUNDS]).all())
        if good:
            log.state[:size] = state
            good = size == HEAD + min(log.count, MOST) and bool((np.diff(log.rounds) > 0).all())
        if not good:
            raise InputError("this is no log of alarms")
        return log


def alarms_of(losses: npt.ArrayLike, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Return the rounds with an alarm, of losses as shares of the largest there is.

    Losses that were multiplied by sample weights are divided by them; rounds of weight 0 are left
    out.
    """
    log = AlarmLog()
    if sample_weight is None:
        log.add(losses)
        return log.rounds
    counted = np.flatnonzero(sample_weight)
    log.add(np.asarray(losses)[counted] / sample_weight[counted])
    return counted[log.rounds]
