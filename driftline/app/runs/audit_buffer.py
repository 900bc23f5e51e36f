"""The rounds of a run that is short enough to be audited."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np

from driftline.app.runs.reading import Rounds
from driftline.committee import CommitteeTrace
from driftline.trace import Trace

__all__ = ["AuditBuffer", "joined", "stacked"]

#: So many numbers are kept at most, of inputs and traces together: 64 megabytes.
MOST = 8_000_000


class AuditBuffer:
    """Inputs, labels and traces, up to a number of entries; what grows larger is let go.

    ``reason`` is why nothing is kept, empty while all is.
    """

    def __init__(self, most: int | None = MOST):
        self.most, self.size, self.reason = most, 0, ""
        self.rounds: list[Rounds] = []
        self.traces: list[CommitteeTrace] = []
        self.saved = 0  # how many of these are in a file

    @property
    def wants_weights(self) -> bool:
        """Whether the next trace is the first: a replay starts from its weights, and no others."""
        return not self.reason and not self.traces

    def add(self, rounds: Rounds, trace: CommitteeTrace) -> None:
        """Keep some more rounds, or nothing from now on."""
        if self.reason:
            return
        if self.traces:
            trace = replace(trace, origin=None)
        self.size += _entries(rounds.inputs) + _numbers(trace)
        self.size += sum(map(_numbers, trace.members))
        if self.most is not None and self.size > self.most:
            self.drop("the run is too long to be kept for an audit: ask for one by --certify")
        elif self.traces and _config(trace) != _config(self.traces[0]):
            self.drop("classes came up on the way, and there is no audit across that")
        else:
            self.rounds.append(rounds)
            self.traces.append(trace)

    def drop(self, reason: str) -> None:
        """Let go of everything."""
        self.rounds, self.traces, self.reason = [], [], reason

    def unsaved(self) -> tuple[list[Rounds], list[CommitteeTrace]]:
        """Return what was kept since the last time that it was saved."""
        return self.rounds[self.saved :], self.traces[self.saved :]

    def trace(self) -> CommitteeTrace:
        """Return one trace of all rounds; without a digest, since rows were met in pieces."""
        return joined(self.traces)

    def inputs(self) -> Any:
        """Return all inputs as a learner takes them."""
        return stacked(self.rounds)[0]

    def labels(self) -> Any:
        """Return all labels as a learner takes them."""
        return stacked(self.rounds)[1]


def joined(traces: list[CommitteeTrace]) -> CommitteeTrace:
    """Return one trace of rounds that follow each other."""
    first = traces[0]
    members = tuple(
        _joined([trace.members[j] for trace in traces]) for j in range(len(first.members))
    )
    names = ("risk", "target_loss", "weights", "member_risk")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(trace, name) for trace in traces]) for name in names
    }
    prediction = _stacked([trace.prediction for trace in traces])
    start = None if first.origin is None else first.origin._replace(digest="")
    return CommitteeTrace(**columns, prediction=prediction, members=members, origin=start)


def stacked(rounds: list[Rounds]) -> tuple[Any, Any]:
    """Return inputs and labels of rounds that follow each other."""
    inputs, labels = [part.inputs for part in rounds], [part.labels for part in rounds]
    if isinstance(labels[0], list):
        made: Any = [label for part in labels for label in part]
    else:
        made = np.concatenate(labels)
    if isinstance(inputs[0], list):
        return [group for part in inputs for group in part], made
    if hasattr(inputs[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(inputs, format="csr"), made
    return np.concatenate(inputs), made


def _entries(inputs: Any) -> int:
    if isinstance(inputs, list):
        return sum(group.size for group in inputs)
    return int(inputs.nnz * 2 if hasattr(inputs, "indptr") else inputs.size)


def _numbers(trace: CommitteeTrace | Trace) -> int:
    """Return how many numbers a trace has, that of the members of a committee apart."""
    columns = [getattr(trace, field.name) for field in fields(trace)]
    if isinstance(trace, Trace) and trace.origin is not None:
        columns.append(trace.origin.weights)
    return sum(column.size for column in columns if isinstance(column, np.ndarray))


def _config(trace: CommitteeTrace) -> str:
    """Return what members are, as it is saved and loaded."""
    return json.dumps(trace.members[0].config, sort_keys=True)


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    """Join predictions, rows of which may differ in length."""
    if parts[0].ndim == 1:
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    wide = [np.pad(p, ((0, 0), (0, width - p.shape[1])), constant_values=-1) for p in parts]
    return np.concatenate(wide)


def _joined(traces: list[Trace]) -> Trace:
    columns: dict[str, Any] = {}
    for field in fields(Trace):
        parts = [getattr(trace, field.name) for trace in traces]
        if field.name == "prediction":
            columns[field.name] = _stacked(parts)
        elif field.name not in ("origin", "config", "digest") and parts[0] is not None:
            columns[field.name] = np.concatenate(parts)
    return replace(traces[0], **columns, digest="")
