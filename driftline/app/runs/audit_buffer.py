"""A buffer of the rounds of a run, for its audit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from driftline.app.runs.reading import Rounds
from driftline.committee import CommitteeTrace
from driftline.inputs import rows_of
from driftline.learner.late import LateRun
from driftline.typing import CheckedLabels, Inputs

__all__ = ["AuditBuffer", "stacked", "stacked_delays", "stacked_weights"]

#: The most numbers in the buffer, of inputs and traces together: 64 megabytes.
MOST = 8_000_000
#: How many traces are joined at once.
TOGETHER = 128


class AuditBuffer:
    """Inputs, labels and traces; beyond a number of entries the buffer is dropped.

    ``reason`` is why it was dropped, empty as long as everything is kept.
    """

    def __init__(self, most: int | None = MOST):
        self.most, self.size, self.reason = most, 0, ""
        self.rounds: list[Rounds] = []
        self.traces: list[CommitteeTrace] = []
        self.saved = 0  # how many of these are in a file

    @property
    def wants_weights(self) -> bool:
        """Whether the next trace is the first: a replay needs the weights of the first only."""
        return not self.reason and not self.traces

    def add(self, rounds: Rounds, trace: CommitteeTrace) -> None:
        """Add some rounds, or drop the buffer if they are too many."""
        if self.reason:
            return
        trace = _undigested(trace, first=not self.traces)
        self.size += _entries(rounds.inputs) + _numbers(trace)
        if self.most is not None and self.size > self.most:
            self.drop("the run is too long to be kept for an audit: ask for one by --certify")
        elif self.rounds and (rounds.delays is None) != (self.rounds[0].delays is None):
            self.drop("labels came late in some of the rounds, and there is no audit across that")
        elif self.traces and _config(trace) != _config(self.traces[0]):
            self.drop("classes came up on the way, and there is no audit across that")
        else:
            self.rounds.append(rounds)
            self.traces.append(trace)
            if len(self.traces) - self.saved >= TOGETHER:
                self._join()

    def _join(self) -> None:
        """Make one trace of all that are not saved: objects would take more memory than numbers."""
        rounds, traces = self.unsaved()
        inputs, labels = stacked(rounds)
        count, rows = sum(part.played for part in rounds), sum(part.rows for part in rounds)
        weights, delays = stacked_weights(rounds), stacked_delays(rounds)
        made = Rounds(inputs, labels, count, rows, weights=weights, delays=delays)
        self.rounds[self.saved :] = [made]
        self.traces[self.saved :] = [CommitteeTrace.join(traces)]

    def drop(self, reason: str) -> None:
        """Drop everything."""
        self.rounds, self.traces, self.reason = [], [], reason

    def unsaved(self) -> tuple[list[Rounds], list[CommitteeTrace]]:
        """Return the rounds and traces since the last save."""
        return self.rounds[self.saved :], self.traces[self.saved :]

    def trace(self) -> CommitteeTrace:
        """Return one trace of all rounds, without a digest, since rows came in pieces.

        Where labels came late, traces are those of events.
        """
        if len(self.traces) == 1 and self.traces[0].arrival is not None:  # of a file
            return self.traces[0]
        made, delays = CommitteeTrace.join(self.traces), stacked_delays(self.rounds)
        if delays is None:
            return made
        rows = rows_of(self.inputs())
        return made.rounds_of(LateRun(0, rows, self.labels(), self.weights(), delays, None))

    def inputs(self) -> Inputs:
        """Return all inputs as a learner takes them."""
        return stacked(self.rounds)[0]

    def labels(self) -> CheckedLabels:
        """Return all labels as a learner takes them."""
        return stacked(self.rounds)[1]

    def weights(self) -> np.ndarray | None:
        """Return the weights of all rounds, None if each counts once."""
        return stacked_weights(self.rounds)


def stacked(rounds: list[Rounds]) -> tuple[Inputs, CheckedLabels]:
    """Return the concatenated inputs and labels of consecutive rounds."""
    inputs, labels = [part.inputs for part in rounds], [part.labels for part in rounds]
    if isinstance(labels[0], list):
        made: CheckedLabels = [label for part in labels for label in part]
    else:
        made = np.concatenate(labels)
    if isinstance(inputs[0], list):
        return [group for part in inputs for group in part], made
    if hasattr(inputs[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(inputs, format="csr"), made
    return np.concatenate(inputs), made


def stacked_weights(rounds: list[Rounds]) -> np.ndarray | None:
    """Return the concatenated weights of consecutive rounds, None if there are none."""
    made = [part.weights for part in rounds if part.weights is not None]
    return np.concatenate(made) if made else None


def stacked_delays(rounds: list[Rounds]) -> np.ndarray | None:
    """Return the concatenated delays of consecutive rounds, None if there are none."""
    made = [part.delays for part in rounds if part.delays is not None]
    return np.concatenate(made) if made else None


def _entries(inputs: Inputs) -> int:
    if isinstance(inputs, list):
        return sum(group.size for group in inputs)
    return int(inputs.nnz * 2 if hasattr(inputs, "indptr") else inputs.size)


def _numbers(trace: CommitteeTrace) -> int:
    """Return how many numbers a trace has, with its origin."""
    origins = [member.origin for member in trace.members if member.origin is not None]
    kept = [array for origin in origins for array in (origin.weights, origin.memory)]
    arrays = (*trace.columns().values(), *(array for array in kept if array is not None))
    return sum(array.size for array in arrays)


def _undigested(trace: CommitteeTrace, first: bool) -> CommitteeTrace:
    """Return a trace without the digest of a stream, since rows come in pieces."""
    origin = trace.origin._replace(digest="") if first and trace.origin is not None else None
    members = tuple(replace(member, digest="") for member in trace.members)
    return replace(trace, origin=origin, members=members)


def _config(trace: CommitteeTrace) -> str:
    """Return the config of the members, in the form in which it is saved."""
    return json.dumps(trace.members[0].config, sort_keys=True)
