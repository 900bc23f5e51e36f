"""Rounds of a table that were predicted, until their labels come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftline.app.runs.baselines import Baselines
from driftline.committee import CommitteeTrace
from driftline.errors import InputError
from driftline.learner.late import LateRun
from driftline.trace import Trace
from driftline.typing import Json

__all__ = ["LateRounds", "Told"]


class Told(NamedTuple):
    """Rounds whose labels came, in the order in which they came.

    ``losses`` are those of the learner and of the baselines, ``risks``, ``shares``, ``eta`` and
    ``restarts`` have a column for every member; ``ticks`` are the places, among the rounds that
    were predicted meanwhile, of those with which labels came. ``sets`` say whether the label was in
    its set, and how large that was; nothing without sets. ``account`` is that of a guard with each
    label, None where there is none.
    """

    losses: np.ndarray
    risks: np.ndarray
    shares: np.ndarray
    eta: np.ndarray
    restarts: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    predictions: np.ndarray
    ticks: np.ndarray
    sets: np.ndarray
    account: np.ndarray | None = None


class LateRounds:
    """What a run needs to know of predicted rounds when their labels come.

    A row for every round that waits, in the order in which the learner has them: the losses of
    learner and baselines, the weight of the round, members' expected losses and their weights; and
    label and prediction. ``untold`` is how many rounds more were predicted than learned from.
    """

    def __init__(self) -> None:
        self.known: np.ndarray | None = None
        self.labels: np.ndarray = np.zeros(0, dtype=np.int64)
        self.predictions = self.labels
        self.untold = 0

    @property
    def waiting(self) -> int:
        """How many rounds wait."""
        return 0 if self.known is None else len(self.known)

    def add(
        self,
        trace: CommitteeTrace,
        late: LateRun,
        labels: np.ndarray,
        baselines: Baselines,
        sets: np.ndarray,
        others: np.ndarray | None = None,
    ) -> Told:
        """Add rounds by the trace of their events, and labels; return those whose labels came.

        ``sets`` has a row for each: whether the label is in its set, and how large that is. And so
        have ``others``: what other learners have paid, times the weight of the round.
        """
        asked, told = late.ask_events, np.flatnonzero(~late.asked)
        weights, losses = late.sample_weight[late.carried :], trace.target_loss[asked]
        if self.waiting:
            labels = np.concatenate([self.labels, labels])
        places, left, members = late.rounds[told], late.left, len(trace.members)
        counted = np.cumsum(~late.asked)[asked]
        beside = baselines.late_losses(labels[places], labels[late.carried :], counted)
        beside = beside * weights[:, np.newaxis]
        beside = beside if others is None else np.hstack([beside, others])
        own = [losses, *beside.T, weights]
        known = np.column_stack([*own, trace.member_risk[asked], trace.weights[asked], sets])
        made = np.asarray(trace.prediction)[asked]
        if self.known is not None and len(self.known):
            known, made = np.vstack([self.known, known]), np.concatenate([self.predictions, made])
        self.untold += len(asked) - len(told)
        self.known, self.labels, self.predictions = known[left], labels[left], made[left]
        given, first = known[places], 2 + beside.shape[1]
        return Told(
            given[:, : first - 1],
            given[:, first : first + members],
            given[:, first + members : first + 2 * members],
            np.column_stack([member.eta[told] for member in trace.members]),
            np.column_stack([_restarts(member, told) for member in trace.members]),
            given[:, first - 1],
            labels[places],
            made[places],
            np.cumsum(late.asked)[told] - 1,
            given[:, first + 2 * members :],
            None if trace.account is None else trace.account[told],
        )

    def to_saved(self) -> tuple[Json | None, dict[str, np.ndarray]]:
        """Return all as plain data and arrays; None where no label ever came late."""
        if self.known is None:
            return None, {}
        arrays = {"known": self.known, "labels": self.labels, "predictions": self.predictions}
        return {"untold": self.untold}, arrays

    @classmethod
    def from_saved(cls, about: Json | None, arrays: Mapping[str, Any], waiting: int) -> LateRounds:
        """Return the rounds from what :meth:`to_saved` returned, if so many can wait."""
        made = cls()
        if about is not None:
            made.untold = int(about["untold"])
            made.known, made.labels = arrays["known"], arrays["labels"]
            made.predictions = arrays["predictions"]
            if made.known.ndim != 2 or not np.isfinite(made.known).all():
                raise InputError("losses of rounds that wait must be finite numbers")
            for column in (made.labels, made.predictions):
                if column.dtype != np.int64 or len(column) != len(made.known):
                    raise InputError("labels of rounds that wait must be whole numbers, one each")
        if made.waiting != waiting:
            raise InputError(f"{waiting} rounds wait for labels, but {made.waiting} are known")
        return made


def _restarts(member: Trace, told: np.ndarray) -> np.ndarray:
    """Return whether a member had restarted before each label that came."""
    return np.zeros(len(told)) if member.restarted is None else member.restarted[told]
