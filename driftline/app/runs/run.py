"""A run over a table: learn, keep the score and the journal."""

from __future__ import annotations

import time
from dataclasses import asdict

import numpy as np

from driftline.app.runs.audit_buffer import AuditBuffer
from driftline.app.runs.champion import ACCOUNT, Acts
from driftline.app.runs.committee_model import PER_MEMBER, CommitteeModel
from driftline.app.runs.counts import Counts
from driftline.app.runs.journal import Journal
from driftline.app.runs.keyed_model import KeyedModel
from driftline.app.runs.late_rounds import LateRounds, Told
from driftline.app.runs.model import Model, Played
from driftline.app.runs.reading import Rounds
from driftline.app.runs.row_sample import RowSample
from driftline.app.runs.times import Times
from driftline.committee.pooling import chances_of
from driftline.errors import InputError
from driftline.typing import Inputs, Json, Labels

__all__ = ["WEIGHT", "Run"]

#: Why there is no audit of a run that began while labels were waited for.
CARRIED = "labels of rounds before this run came in it, and there is no audit across that"

#: The columns of sets of labels, if there are any: whether it has the label, and its size.
SETS = ["covered", "set_size"]

#: The column of the weights of rounds, if they have any.
WEIGHT = "sample_weight"


class Run:
    """A model that learns, with its score beside the baselines.

    Parameters
    ----------
    model
        The model that learns; it may have learned before.
    audit_buffer
        The buffer of rounds for an audit; None to keep none.
    journal
        The journal to continue; by default a new one.

    Attributes
    ----------
    probabilities
        Whether there are probabilities of every label before each row.
    proba
        Whether these are told.
    """

    probabilities = proba = False

    def __init__(
        self,
        model: Model,
        audit_buffer: AuditBuffer | None = None,
        journal: Journal | None = None,
    ):
        self.model, self.audit_buffer = model, audit_buffer
        names = ("loss", *model.baselines.names, *model.others)
        self.columns = [name.replace(" ", "_") for name in names]
        self.journal = Journal(self._names) if journal is None else journal
        if self.journal.names != self._names:
            raise InputError("the journal is that of other members")
        #: When the rounds of the journal were, if the table says so.
        self.times = Times()
        #: Some rows of the journal's rounds, by column.
        columns = model.encoder.columns
        width = columns if isinstance(columns, int) else len(columns.columns)
        self.sample = RowSample(width)
        self.rounds, self.rows, self.seconds = 0, 0, 0.0
        #: The weights of all rounds together: their number, unless they have other weights.
        self.weight = 0.0
        #: How many rows without a label were left out or only predicted.
        self.unlabelled = 0
        #: How many rounds had no answer.
        self.unanswered = 0
        self.totals = np.zeros(len(self.columns))
        self.counts = Counts()
        #: Rounds of the model that were predicted, and whose labels are still to come.
        self.late = LateRounds()
        #: Of rounds with sets: how many have the label in it, and how many labels all have.
        self.set_totals = np.zeros(2)
        #: Where the guard of a champion has refused what this said.
        self.acts = Acts()

    def next(self) -> Run:
        """Return a run that goes on with model and journal, and has a score of its own."""
        other = Run(self.model, journal=self.journal)
        other.times, other.sample, other.late = self.times, self.sample, self.late
        other.times.begin()
        return other

    @property
    def _names(self) -> list[str]:
        """The columns of the journal: losses, and those of the model."""
        made = self.columns + self.model.columns
        made += [] if self.model.sets is None else SETS
        return [*made, WEIGHT] if self.model.weighs else made

    def learn(self, rounds: Rounds) -> Played:
        """Predict and learn from some rounds; without labels, only predict."""
        self.unlabelled += rounds.passed
        if rounds.labels is None:
            self.unlabelled += rounds.rows
            made = self.model.next_predictions(rounds.inputs, rounds.keys)
            self.model.remember(rounds.memory)
            chances = None
            if self.probabilities:
                chances = chances_of(self.model.learner, rounds.inputs)
            played = Played(made, probabilities=chances)
            return played._replace(sets=self._sets(played, rounds))
        if rounds.delays is not None:
            return self._learn_late(rounds, rounds.delays)
        start = time.perf_counter()
        keep = self.audit_buffer is not None and self.audit_buffer.wants_weights
        wanted = {"audit": keep, "probabilities": self.probabilities}
        played = self.model.learn(
            rounds.inputs, rounds.labels, rounds.weights, rounds.keys, **wanted
        )
        self.model.remember(rounds.memory)
        weights = played.weights
        self._note_acts(played)
        rounds, sets = rounds._replace(weights=weights), self._sets(played, rounds)
        self.seconds += time.perf_counter() - start
        beside = self.model.beside(rounds.labels, weights, rounds.keys)
        if self.audit_buffer is not None and played.trace is not None:
            self.audit_buffer.add(rounds, played.trace)
        others = () if played.others is None else (played.others,)
        assert played.losses is not None
        losses = np.column_stack([played.losses, beside, *others])
        if not self.journal.rounds:  # members that the first rows do not suit were left out
            self.journal = Journal(self._names)
        columns = dict(zip(self.columns, losses.T, strict=True)) | played.columns
        if sets is not None:
            own = _set_columns(sets, rounds.labels)
            columns |= dict(zip(SETS, own.T, strict=True))
            self.set_totals += own.sum(axis=0)
        self.journal.add(columns if weights is None else columns | {WEIGHT: weights})
        self.sample.add(rounds.played, lambda places: self._cells(rounds.inputs, places))
        if self.model.encoder.time is not None:
            texts = [""] * rounds.played if rounds.times is None else rounds.times
            self.times.add(texts, [t for t in self.journal_alarms if t >= self.times.rounds])
        self.totals += losses.sum(axis=0)
        self.weight += rounds.played if weights is None else float(weights.sum())
        self._count(rounds.labels, np.asarray(played.prediction))
        self.rounds += rounds.played
        self.rows += rounds.rows
        return played._replace(sets=sets)

    def _learn_late(self, rounds: Rounds, delays: np.ndarray) -> Played:
        """Predict some rounds, and learn from those whose labels come meanwhile."""
        start = time.perf_counter()
        keep = self.audit_buffer is not None and self.audit_buffer.wants_weights
        given = (rounds.inputs, rounds.labels, rounds.weights, delays, keep, self.probabilities)
        model = self.model
        assert isinstance(model, CommitteeModel)  # check_delay refuses others
        played = model.learn_late(*given)
        trace, late = played.trace, played.late
        assert trace is not None and late is not None
        self.model.remember(rounds.memory)
        sets = self._sets(played, rounds)
        self.seconds += time.perf_counter() - start
        own = _set_columns(sets, rounds.labels)
        labels = np.asarray(rounds.labels)
        self._note_acts(played)
        told = self.late.add(trace, late, labels, self.model.baselines, own, played.others)
        self.set_totals += told.sets.sum(axis=0) if sets is not None else 0.0
        model.count_late(told)
        if self.audit_buffer is not None:
            if late.carried and self.audit_buffer.wants_weights:
                self.audit_buffer.drop(CARRIED)
            self.audit_buffer.add(rounds, trace)
        if not self.journal.rounds:
            self.journal = Journal(self._names)
        self.journal.add(self._late_columns(told))
        self.sample.add(rounds.played, lambda places: self._cells(rounds.inputs, places))
        if self.model.encoder.time is not None:
            texts = [""] * rounds.played if rounds.times is None else rounds.times
            came = [texts[tick] for tick in told.ticks.tolist()]
            self.times.add(came, [t for t in self.journal_alarms if t >= self.times.rounds])
        self.totals += told.losses.sum(axis=0)
        self.weight += float(told.weights.sum())
        if len(told.labels):
            self._count(told.labels, told.predictions)
        self.rounds += len(told.labels)
        self.rows += rounds.rows
        return played._replace(sets=sets)

    def _note_acts(self, played: Played) -> None:
        """Note where a champion was refused, by the numbers of rows in the predictions."""
        if played.refused is not None and played.silent is not None:
            first = self.model.predicted + 1 - len(played.refused)
            self.acts.add(played.refused, played.silent, first)

    def _count(self, labels: Labels, predictions: np.ndarray) -> None:
        """Count what was predicted for which labels, and rounds without an answer."""
        self.counts.add(labels, predictions)
        if self.model.abstains:
            self.unanswered += int(np.count_nonzero(predictions < 0))

    def _late_columns(self, told: Told) -> dict[str, np.ndarray]:
        """Return the columns of the journal for rounds whose labels came."""
        columns = dict(zip(self.columns, told.losses.T, strict=True))
        members = zip(PER_MEMBER, (told.risks, told.shares, told.eta, told.restarts), strict=True)
        columns |= {f"{what}.{j}": own for what, made in members for j, own in enumerate(made.T)}
        columns |= dict(zip(SETS, told.sets.T, strict=False))
        columns |= {ACCOUNT: told.account} if ACCOUNT in self._names else {}
        return columns | ({WEIGHT: told.weights} if self.model.weighs else {})

    def _sets(self, played: Played, rounds: Rounds) -> np.ndarray | None:
        """Return which labels are in the set of each row, None without sets."""
        if played.probabilities is None or self.model.sets is None:
            return None
        labels = None if rounds.labels is None else np.asarray(rounds.labels)
        return self.model.sets.play(played.probabilities, labels, played.late, played.known)

    def _cells(self, inputs: Inputs, places: np.ndarray) -> np.ndarray:
        """Return a value a column of some inputs; of a query, those of its middle document."""
        if isinstance(inputs, list):
            rows = np.array([inputs[i][len(inputs[i]) // 2] for i in places.tolist()])
        else:
            rows = inputs[places]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        columns, aside = self.model.encoder.columns, self.model.encoder.champion is not None
        return rows if isinstance(columns, int) else rows[:, aside:]

    @property
    def share(self) -> float:
        """The mean loss so far, by the weights of rounds."""
        return float(self.totals[0] / (self.weight or 1.0))

    @property
    def scores(self) -> dict[str, float]:
        """Mean losses of the learner and of the baselines, by name."""
        names = ("learner", *self.model.baselines.names, *self.model.others)
        return dict(zip(names, (self.totals / (self.weight or 1.0)).tolist(), strict=True))

    @property
    def alarms(self) -> list[int]:
        """The rounds of this run after which losses were seen to have risen, counted from 0."""
        return self._alarms(self.rounds)

    @property
    def journal_alarms(self) -> list[int]:
        """The same for all rounds of the journal, which may have begun before this run."""
        return self._alarms(self.journal.rounds)

    def _alarms(self, rounds: int) -> list[int]:
        before = self.model.rounds - rounds
        return [int(t) - before for t in self.model.alarms if t >= before]

    @property
    def alarm_times(self) -> list[str]:
        """When each alarm of this run was, empty where that is not known."""
        before = self.journal.rounds - self.rounds
        return self.times.of_alarms([t + before for t in self.alarms])

    @property
    def beaten_by(self) -> str:
        """The baseline that has a mean loss as small as the learner's, empty if there is none."""
        scores = self.scores
        own = scores.pop("learner")
        if self.model.encoder.champion is not None:  # which is followed, and not to be beaten
            scores = {name: scores[name] for name in self.model.baselines.names}
        best = min(scores, key=lambda name: scores[name])
        return best if self.rounds and scores[best] <= own else ""

    def summary(self) -> Json:
        """Return the summary of the run as plain data."""
        labels = self.model.encoder.labels
        return {
            "task": labels.kind,
            "label": labels.names,
            "classes": len(labels.values) or None,
            "features": self.model.encoder.features,
            "learner": self.model.about,
            "rows": self.rows,
            "rounds": self.rounds,
            "unlabelled": self.unlabelled,
            "weight": self.weight,
            "weight_column": self.model.encoder.weight,
            "balanced": self.model.encoder.balanced,
            "abstain": self.model.task.predictions.doubt.cost if self.model.abstains else None,
            "unanswered": self.unanswered if self.model.abstains else None,
            "rounds_of_model": self.model.rounds,
            "to_come": self.late.waiting,
            "never_came": self.late.untold - self.late.waiting,
            "loss": float(self.totals[0]),
            "mean_loss": self.scores,
            "beaten_by": self.beaten_by or None,
            "alarms": [t + 1 for t in self.alarms],
            "times": self._times(),
            "far_outside": self.model.far_outside,
            "sets": self.set_summary(),
            "champion": self.champion_summary(),
            "key": self.model.encoder.key,
            "keys": self._keys(),
        }

    def _keys(self) -> Json | None:
        """Return how many keys there are, with the worst, the typical and the best; or None."""
        if not isinstance(self.model, KeyedModel):
            return None
        table = self.model.table()
        parts = {what: [asdict(row) for row in rows] for what, rows in table.parts.items()}
        names = ("count", "least", "compared", "beaten", "risen", "alarms")
        return {name: getattr(table, name) for name in names} | parts

    def set_summary(self) -> Json | None:
        """Return goal, coverage and mean size of sets; None without sets."""
        if self.model.sets is None:
            return None
        covered, size = (self.set_totals / max(1, self.rounds)).tolist()
        return {"goal": self.model.sets.part.coverage, "coverage": covered, "mean_size": size}

    def champion_summary(self) -> Json | None:
        """Return what a champion, its guard and the average have paid; None without a champion.

        Rows are numbered as predictions are.
        """
        column, acts, totals = self.model.encoder.champion, self.acts, self.totals.tolist()
        if column is None:
            return None
        paid = dict(zip(("champion", "averaged"), totals[-len(self.model.others) :], strict=True))
        made = {"column": column, "loss": {"guarded": totals[0], **paid}}
        names = ("rows", "stretches", "first", "last")
        told: Json = {name: getattr(acts, name) or None for name in names}
        return made | {"silent": acts.silent, "acted": told if acts.rows else None}

    def _times(self) -> Json | None:
        """Return when the first round was, the last one, and alarms; None if there are no times."""
        name, times = self.model.encoder.time, self.times
        if name is None:
            return None
        ends = {"column": name, "first": times.first, "last": times.last}
        return ends | {"alarms": self.alarm_times}


def _set_columns(sets: np.ndarray | None, labels: Labels) -> np.ndarray:
    """Return for each row whether its label is in its set, and how large that is; or nothing."""
    codes = np.asarray(labels)
    if sets is None:
        return np.zeros((len(codes), 0))
    known = codes < sets.shape[1]
    inside = known & sets[np.arange(len(codes)), np.where(known, codes, 0)]
    return np.column_stack([inside, sets.sum(axis=1)]).astype(np.float64)
