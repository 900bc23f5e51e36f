"""A committee together with the encoder of its columns, in one file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftline.app.runs.baselines import baselines_of
from driftline.app.runs.champion import ACCOUNT, OTHERS, beside_of
from driftline.app.runs.late_rounds import Told
from driftline.app.runs.model import Model, Played
from driftline.app.tables import Encoder
from driftline.committee import Committee, CommitteeTrace, named
from driftline.committee.pooling import chances_of
from driftline.errors import InputError
from driftline.learner import Ticket
from driftline.sets import Adaptive, SetLevel
from driftline.sets.run import check_task
from driftline.state.loading import DAMAGE, loaded
from driftline.typing import Input, Inputs, Json, Label, Labels, Prediction, Saved

__all__ = ["PER_MEMBER", "CommitteeModel"]

#: The columns of the journal for every member.
PER_MEMBER = ("risk", "weight", "eta", "restarts")

#: How many random predictions are drawn at a time.
DRAWN = 1000

#: The prefix of the names of arrays of the level of sets.
SETS = "sets."


class Known(NamedTuple):
    """How many classes had come before each row; and probabilities of the first row by these."""

    counts: np.ndarray
    first: np.ndarray


class CommitteeModel(Model):
    """A committee, and the encoder that makes inputs and labels for it.

    ``totals`` are the expected losses of the members since the first round.
    """

    learner: Committee

    def __init__(self, learner: Committee, encoder: Encoder, about: str = ""):
        super().__init__(learner, encoder, baselines_of(learner.task), about)
        self.predicted = learner.rounds
        self.totals = np.zeros(len(learner.members))
        self._weight = 0.0
        self._drawn = 0  # random predictions without learning

    @classmethod
    def new(
        cls, name: str, encoder: Encoder, seed: int | None = 0, coverage: float | None = None
    ) -> CommitteeModel:
        """Return a new model, by the name of its learner; with sets that have this coverage."""
        given: Any = {"column": encoder.champion is not None, "categories": encoder.categories}
        made = cls(named(name, encoder.labels.task, seed=seed, **given), encoder, name)
        if coverage is not None:
            check_task(encoder.labels.task)
            made.sets = Adaptive(coverage).level()
        return made

    @property
    def weight(self) -> float:
        """The weights of all rounds together."""
        return self._weight

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self.learner.rounds

    @property
    def waits(self) -> int:
        """How many labels are still to come."""
        return self.learner._waits

    @property
    def alarms(self) -> np.ndarray:
        """The rounds after which losses were seen to have risen, counted from 0."""
        return self.learner.alarms

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the journal for every member."""
        made = [f"{what}.{j}" for what in PER_MEMBER for j in range(len(self.learner.members))]
        return [*made, ACCOUNT] if self.others else made

    @property
    def others(self) -> tuple[str, ...]:
        """The champion and the average beside it, if there is a champion."""
        return () if self.encoder.champion is None else OTHERS

    def describe(self) -> str:
        """Say which committee it is, and which theorem applies."""
        return self.learner.describe()

    @property
    def random(self) -> bool:
        """Whether predictions are random, so that losses differ from expected losses."""
        return not all(member._fixed.certain for member in self.learner.combined)

    @property
    def far_outside(self) -> dict[str, int]:
        """How many values of each column of numbers were far outside, where any were.

        Categories are not counted.
        """
        far = self.learner._far
        if far is None or not far.any():
            return {}
        columns, counts = self.encoder.columns, far.tolist()
        if self.encoder.champion is not None:
            del counts[0]
        if isinstance(columns, int):
            places = {f"feature {j}": j for j in range(len(counts))}
        else:
            places = columns.numbers
        return {name: counts[j] for name, j in places.items() if counts[j]}

    def learn(
        self,
        inputs: Inputs,
        labels: Labels,
        weights: np.ndarray | None = None,
        keys: Sequence[str] | None = None,
        audit: bool = False,
        probabilities: bool = False,
    ) -> Played:
        """Play rounds; classes that are new are added first."""
        known = self._known(inputs, labels) if probabilities else None
        learner, classes = self._grown(labels)
        weights, balance = self._balanced(labels, weights)
        given: Json = {"audit": audit, "probabilities": probabilities}
        trace = learner.run(inputs, labels, sample_weight=weights, **given)
        chances, trace = _of_known(trace.probabilities, known), replace(trace, probabilities=None)
        self.learner, self.classes, self.balance = learner, classes, balance
        self._count(trace.target_loss, trace.member_risk, weights)
        self.predicted += len(trace)
        made = trace.prediction, trace.target_loss, trace.sample_weight, _columns(trace)
        played = Played(*made, trace=trace, probabilities=chances, known=_counts(known))
        if not self.others:
            return played
        assert trace.account is not None
        columns = played.columns | {ACCOUNT: trace.account}
        beside = beside_of(self.task, inputs, labels, trace)
        return played._replace(
            columns=columns, others=beside.losses, refused=beside.refused, silent=beside.silent
        )

    def learn_late(
        self,
        inputs: Inputs,
        labels: Labels,
        weights: np.ndarray | None,
        delays: np.ndarray,
        audit: bool = False,
        probabilities: bool = False,
    ) -> Played:
        """Predict rounds, and learn from those whose labels come, as in :meth:`learn`.

        :meth:`count_late` is to follow.
        """
        known = self._known(inputs, labels) if probabilities else None
        learner, classes = self._grown(labels)
        given: Json = {"audit": audit, "probabilities": probabilities}
        trace, late = learner._run_events(inputs, labels, delays, sample_weight=weights, **given)
        self.learner, self.classes, self.late = learner, classes, True
        self.predicted += int(late.asked.sum())
        asked, events = late.ask_events, trace.probabilities
        chances = _of_known(None if events is None else events[asked], known)
        beside: Any = (None, None, None)
        if self.others:
            beside = beside_of(self.task, inputs, labels, trace, asked)
        return Played(
            np.asarray(trace.prediction)[asked],
            trace.target_loss[asked],
            weights,
            trace=replace(trace, probabilities=None),
            late=late,
            probabilities=chances,
            known=_counts(known),
            others=beside[0],
            refused=beside[1],
            silent=beside[2],
        )

    def _known(self, inputs: Inputs, labels: Labels) -> Known | None:
        """Return which classes had come before each row, None if none is new."""
        if (
            self.task.labels.signs
            or not self.task.geometry.classes
            or int(np.max(labels)) < self.learner.task.dim
        ):
            return None
        before: np.ndarray = np.r_[self.learner.task.dim - 1, np.asarray(labels)[:-1]]
        return Known(np.maximum.accumulate(before) + 1, chances_of(self.learner, inputs[:1])[0])

    def count_late(self, told: Told) -> None:
        """Add up what was paid for rounds whose labels came."""
        self._count(told.losses[:, 0], told.risks, told.weights if self.weighs else None)

    def learn_one(self, x: Input, label: Label) -> Prediction:
        """Play one round and return what was predicted: as :meth:`learn`, and much faster."""
        learner, classes = self._grown([label])
        made = learner.step(x, label)
        self.learner, self.classes = learner, classes
        self._count(np.array([made.target_loss]), made.member_risk[np.newaxis])
        self.predicted += 1
        return made.prediction

    def tell(self, ticket: Ticket, label: Label) -> None:
        """Learn from a ticket of the learner and its label; if it is refused, nothing changes."""
        self.tell_rows([ticket], [label])

    def tell_rows(self, tickets: Sequence[Ticket], labels: Labels, ahead: bool = False) -> None:
        """Learn from tickets and their labels, as one after the other; if refused, from none.

        With ``ahead`` classes that are new are added first.
        """
        losses, classes = self._losses_of([ticket.prediction for ticket in tickets], labels), 0
        cuts, learner, risks = [] if ahead else self._new_classes(labels), self.learner, []
        if cuts:  # what comes before a new class is learned without it, by a copy
            learner = self.learner.copy()
        for start, stop in itertools.pairwise([0, *cuts, len(labels)]):
            learner, known = self._grown(labels[start:stop], learner)
            classes = max(classes, known)
            risks.append(learner.tell_risks(tickets[start:stop], labels[start:stop]))
        self.learner, self.classes, self.late = learner, classes, True
        paid = np.concatenate(risks)
        self._add(losses, paid)
        self._weight += len(paid)

    def _count(
        self, losses: np.ndarray, risks: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Add up what was paid by the committee and by its members."""
        self._add([float(losses.sum())], risks.sum(axis=0, keepdims=True))
        self._weight += float(len(risks) if weights is None else weights.sum())

    def _add(self, losses: Iterable[float], risks: np.ndarray) -> None:
        """Add what the committee and its members have paid, one after the other."""
        if len(self.totals) > risks.shape[1]:  # members that first rows do not suit were left out
            self.totals = np.zeros(risks.shape[1])
        for loss in losses:
            self.loss += loss
        self.totals = np.cumsum(np.vstack([self.totals, risks]), axis=0)[-1]

    def _new_classes(self, labels: Labels) -> list[int]:
        """Return the places, but for the first, from which on there are more classes."""
        if not self.encoder.labels.grows or int(np.max(labels)) < self.learner.task.dim:
            return []
        known = np.maximum.accumulate(np.r_[self.learner.task.dim - 1, labels])
        return (np.flatnonzero(known[2:] > known[1:-1]) + 1).tolist()

    def predict(self, inputs: Inputs, keys: Sequence[str] | None = None) -> Sequence[Prediction]:
        """Return predictions without learning; the n-th random one is drawn by n."""
        if not self.random:
            return self.next_predictions(inputs)
        count = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
        made: list[Prediction] = []
        for start in range(0, count, DRAWN):
            part = inputs[start : min(start + DRAWN, count)]
            numbers = self._drawn + np.arange(min(DRAWN, count - start))
            made += [one.prediction for one in self.learner.ask_rows(part, numbers=numbers)]
            self._drawn += len(numbers)
        return made

    def next_predictions(
        self, inputs: Inputs, keys: Sequence[str] | None = None
    ) -> Sequence[Prediction]:
        """Return what would be predicted for each row if it came next."""
        made: list[Prediction] = self.learner.predict_rows(inputs)
        return made

    def _losses_of(self, predictions: Sequence[Prediction], labels: Labels) -> list[float]:
        if self.learner.task.answers.zero_one and not self.abstains:
            known = zip(predictions, np.asarray(labels).tolist(), strict=True)
            return [float(prediction != label) for prediction, label in known]
        pairs = zip(predictions, labels, strict=True)
        return [self.loss_of(prediction, label) for prediction, label in pairs]

    def to_saved(self) -> Saved:
        """Return all of the model as plain data and arrays."""
        about, arrays = super().to_saved()
        if self.sets is not None:
            about["sets"], own = self.sets.to_saved()
            arrays |= {f"{SETS}{name}": array for name, array in own.items()}
        about["run"] |= {
            "totals": self.totals.tolist(),
            "weight": self._weight,
        }
        return about, arrays

    @classmethod
    def from_saved(
        cls, path: str | Path, about: Json, arrays: dict[str, np.ndarray]
    ) -> CommitteeModel:
        """Return the model from the content of a file."""
        learner = loaded(path, about, arrays)
        try:
            run = about["run"]
            made = cls(learner, Encoder.from_config(about["table"]), str(run["name"]))
            made._resume(run)
            made._weight = float(run["weight"])
            if not 0.0 <= made.weight < np.inf:
                raise InputError(f"rounds cannot have the weight {made.weight}")
            if "sets" in about:
                own = {k.removeprefix(SETS): a for k, a in arrays.items() if k.startswith(SETS)}
                made.sets = SetLevel.from_saved(about["sets"], own)
                if len(made.sets.waiting) != learner._waits:
                    raise InputError("its sets wait for other labels than its learner")
            wide = made.encoder.features + (made.encoder.champion is not None)
            if learner.features not in (None, wide):
                raise InputError("its columns and its learner do not fit each other")
            totals = np.array(run["totals"], dtype=np.float64)
            good = bool((totals >= 0.0).all() and (totals < np.inf).all())
            if totals.shape != made.totals.shape or not good:
                raise InputError(f"losses of {len(learner.members)} members cannot be {totals}")
        except DAMAGE as error:
            raise InputError(f"{path} is damaged or was edited: {error}") from error
        made.totals = totals
        return made


def _of_known(probabilities: np.ndarray | None, known: Known | None) -> np.ndarray | None:
    """Return probabilities in which classes that had not come before a row have none."""
    if probabilities is None or known is None:
        return probabilities
    labels = np.arange(probabilities.shape[1])
    made = np.where(labels < known.counts[:, np.newaxis], probabilities, 0.0)
    made /= made.sum(axis=1, keepdims=True)
    made[0, : len(known.first)] = known.first
    return made


def _counts(known: Known | None) -> np.ndarray | None:
    return None if known is None else known.counts


def _columns(trace: CommitteeTrace) -> dict[str, np.ndarray]:
    """Return the columns of the journal for every member."""
    columns: dict[str, np.ndarray] = {}
    none = np.zeros(len(trace))
    for j, member in enumerate(trace.members):
        again = none if member.restarted is None else member.restarted
        own = trace.member_risk[:, j], trace.weights[:, j], member.eta, again
        columns |= {f"{what}.{j}": column for what, column in zip(PER_MEMBER, own, strict=True)}
    return columns
