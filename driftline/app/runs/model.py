"""A learner together with the encoder of its columns, in one file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftline.app.runs.baselines import baselines_of
from driftline.app.runs.late_rounds import Told
from driftline.app.tables import Encoder
from driftline.app.tables.columns import Memory
from driftline.committee import Committee, CommitteeTrace, named
from driftline.committee.shares import Stretch, stretches_of
from driftline.committee.vote import vote, vote_one
from driftline.errors import InputError
from driftline.features import Standardiser
from driftline.learner import Balance, Ticket, multiplied
from driftline.learner.late import LateRun
from driftline.sets import Adaptive, SetLevel
from driftline.sets.run import check_task
from driftline.state import archive
from driftline.state.loading import DAMAGE, loaded
from driftline.typing import CheckedLabels, Input, Inputs, Json, Label, Labels, Prediction, Saved

__all__ = ["Model"]

#: The prefix of the names of arrays of the level of sets.
SETS = "sets."


class Model:
    """A committee, and the encoder that makes inputs and labels for it.

    ``totals`` are the expected losses of the members since the first round and ``largest_risk`` is
    the largest in a single round, over its weight; ``loss`` is the committee's own. ``baselines``
    have seen the same labels. ``classes`` is how many classes have a name in rows that were learned
    from, or had one from the start: the encoder may have met others in rows to come. ``predicted``
    is how many rounds were predicted before their label was known; labels that came late, or never,
    make it larger than ``rounds``, and ``late`` is whether there were any.
    :func:`driftline.load` reads only the learner from the file.
    """

    def __init__(self, learner: Committee, encoder: Encoder, about: str = ""):
        self.learner, self.encoder, self.about = learner, encoder, about
        self.loss, self.largest_risk = 0.0, 0.0
        self.predicted, self.late = learner.rounds, False
        #: The level of sets of labels, None without sets.
        self.sets: SetLevel | None = None
        self.classes = len(encoder.labels.values)
        self.totals = np.zeros(len(learner.members))
        self.balance = Balance() if encoder.balanced else None
        #: Rounds of the same scale of weights, since the first.
        self.stretches: tuple[Stretch, ...] = ()
        self.baselines = baselines_of(learner.task)
        #: What baselines paid for labels that were learned from by a :class:`TableModel`.
        self.baseline_losses = np.zeros(len(self.baselines.names))
        self._generator = np.random.default_rng(0)  # of predictions without learning
        #: The scaling of documents for a committee of an older file, which does not scale them.
        self.scaling: Standardiser | None = None

    @classmethod
    def new(
        cls, name: str, encoder: Encoder, seed: int | None = 0, coverage: float | None = None
    ) -> Model:
        """Return a new model, by the name of its learner; with sets that have this coverage."""
        made = cls(named(name, encoder.labels.task, seed=seed), encoder, name)
        if coverage is not None:
            check_task(encoder.labels.task)
            made.sets = Adaptive(coverage).level()
        return made

    @property
    def abstains(self) -> bool:
        """Whether predictions may be none."""
        return self.learner.task.answers is not self.learner.task

    @property
    def weighs(self) -> bool:
        """Whether rows do not all count once."""
        return self.encoder.weight is not None or self.balance is not None

    @property
    def weight(self) -> float:
        """The weights of all rounds together."""
        return sum(stretch.weight for stretch in self.stretches)

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self.learner.rounds

    @property
    def random(self) -> bool:
        """Whether predictions are random, so that losses differ from expected losses."""
        return not all(member.certain for member in self.learner.members)

    @property
    def far_outside(self) -> dict[str, int]:
        """How many values of each column of numbers were far outside, where any were.

        They were clipped. Categories are not counted.
        """
        scaling = self.learner.scaling if self.scaling is None else self.scaling
        if scaling is None or not scaling.far.any():
            return {}
        columns, counts = self.encoder.columns, scaling.far.tolist()
        if isinstance(columns, int):
            places = {f"feature {j}": j for j in range(len(counts))}
        else:
            places = columns.numbers
        return {name: counts[j] for name, j in places.items() if counts[j]}

    def scaled(self, inputs: Inputs) -> Inputs:
        """Return inputs as the committee takes them; a scaling of the model's own learns here."""
        if self.scaling is None or not inputs:
            return inputs
        ends = np.cumsum([len(documents) for documents in inputs])[:-1]
        return np.split(self.scaling.transform(np.concatenate(inputs)), ends)

    def learn(
        self,
        inputs: Inputs,
        labels: Labels,
        weights: np.ndarray | None = None,
        audit: bool = False,
    ) -> CommitteeTrace:
        """Play rounds and return their trace; classes that are new are added first.

        Inputs are as :meth:`scaled` returns them, and ``weights`` those of the table. If they are
        refused, nothing changes.
        """
        (learner, classes), balance = self._grown(labels), self.balance
        if balance is not None:
            rare, balance = balance.weigh(labels)
            weights = rare if weights is None else multiplied(rare, weights)
        trace = learner.run(inputs, labels, audit=audit, sample_weight=weights)
        self.learner, self.classes, self.balance = learner, classes, balance
        self._count(trace.target_loss, trace.member_risk, weights)
        self.predicted += len(trace)
        return trace

    def learn_late(
        self,
        inputs: Inputs,
        labels: Labels,
        weights: np.ndarray | None,
        delays: np.ndarray,
        audit: bool = False,
    ) -> tuple[CommitteeTrace, LateRun]:
        """Predict rounds, and learn from those whose labels come, as in :meth:`learn`.

        Return the trace of all events, and which these are; :meth:`count_late` is to follow.
        """
        learner, classes = self._grown(labels)
        trace, late = learner.run_events(inputs, labels, delays, audit=audit, sample_weight=weights)
        self.learner, self.classes, self.late = learner, classes, True
        self.predicted += int(late.asked.sum())
        return trace, late

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

    def tell_rows(self, tickets: Sequence[Ticket], labels: Labels) -> None:
        """Learn from tickets and their labels, as one after the other; if refused, from none."""
        _, classes = self._grown(labels)
        losses = self._losses_of([ticket.prediction for ticket in tickets], labels)
        cuts, learner, risks = self._new_classes(labels), self.learner, []
        if cuts:  # what comes before a new class is learned without it, by a copy
            learner = self.learner.copy()
        for start, stop in itertools.pairwise([0, *cuts, len(labels)]):
            learner, _ = self._grown(labels[start:stop], learner)
            risks.append(learner.tell_risks(tickets[start:stop], labels[start:stop]))
        self.learner, self.classes, self.late = learner, classes, True
        paid = np.concatenate(risks)
        self._add(losses, paid)
        self._note(paid)

    def _count(
        self, losses: np.ndarray, risks: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Add up what was paid by the committee and by its members."""
        self._add([float(losses.sum())], risks.sum(axis=0, keepdims=True))
        self._note(risks, weights)

    def _add(self, losses: Iterable[float], risks: np.ndarray) -> None:
        """Add what the committee and its members have paid, one after the other."""
        if len(self.totals) > risks.shape[1]:  # members that first rows do not suit were left out
            self.totals = np.zeros(risks.shape[1])
        for loss in losses:
            self.loss += loss
        self.totals = np.cumsum(np.vstack([self.totals, risks]), axis=0)[-1]

    def _note(self, risks: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Note the largest risk of some rounds, and how these count."""
        largest = risks.max(axis=1)
        if weights is not None:
            largest = largest[weights > 0.0] / weights[weights > 0.0]
        self.largest_risk = max(self.largest_risk, float(largest.max(initial=0.0)))
        self.stretches = stretches_of(weights, len(risks), self.stretches)

    def count_labels(self, labels: Labels) -> None:
        """Let baselines predict labels, and then learn of them."""
        losses = self.baselines.losses(labels)  # added one by one: groups of any size, same bits
        self.baseline_losses = np.cumsum(np.vstack([self.baseline_losses, losses]), axis=0)[-1]

    def remember(self, memory: Memory | None) -> None:
        """Save the state of the columns after the rows learned from, not after later ones."""
        if memory is not None and not isinstance(self.encoder.columns, int):
            self.encoder.columns.learned = memory

    def _grown(self, labels: Labels, learner: Committee | None = None) -> tuple[Committee, int]:
        """Return a learner that knows the classes of these labels, and how many have a name."""
        learner = self.learner if learner is None else learner
        if not self.encoder.labels.grows:
            return learner, self.classes
        classes = max(self.classes, int(np.max(labels)) + 1)
        return learner.grown(classes=classes) if classes > learner.task.dim else learner, classes

    def _new_classes(self, labels: Labels) -> list[int]:
        """Return the places, but for the first, from which on there are more classes."""
        if not self.encoder.labels.grows or int(np.max(labels)) < self.learner.task.dim:
            return []
        known = np.maximum.accumulate(np.r_[self.learner.task.dim - 1, labels])
        return (np.flatnonzero(known[2:] > known[1:-1]) + 1).tolist()

    def predict(self, inputs: Inputs) -> Sequence[Prediction] | np.ndarray:
        """Return predictions without learning; random ones are drawn from seed 0."""
        learner = self.learner
        if learner.features is None:  # the first row will be scaled by itself
            return self.next_predictions(inputs)
        if learner.task.layout.ragged:
            rows = map(self._looked_at, inputs)
            return [self._drawn([member.scores(x) for member in learner.members]) for x in rows]
        if all(member.takes_top for member in learner.members):
            return self._predict_together(inputs)
        return [self._drawn(scores) for scores in learner.score_rows(inputs).swapaxes(0, 1)]

    def next_predictions(self, inputs: Inputs) -> CheckedLabels:
        """Return what would be predicted for each row if it came next.

        It depends on the state alone, also where predictions are random.
        """
        count = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
        rows = (inputs[i : i + 1] if hasattr(inputs, "indptr") else inputs[i] for i in range(count))
        return [self.learner.predict(x) for x in rows]

    def _looked_at(self, documents: Inputs) -> Inputs:
        """Return the documents of a query as members see them, without learning."""
        if self.scaling is not None:
            return self.scaling.copy().transform(documents)
        scaling = self.learner.scaling
        return documents if scaling is None else scaling.look(documents).whole

    def _drawn(self, scores: Sequence[np.ndarray]) -> Prediction:
        """Return the vote on one input from the members' scores.

        Random decoders draw anew for every input, while ``learner.predict`` always returns the
        prediction of the next round.
        """
        learner = self.learner
        pairs = zip(learner.members, scores, strict=True)
        made = [member.draw(theta, self._generator.random(1)) for member, theta in pairs]
        return vote_one(learner.task, made, learner.shares.now)

    def _predict_together(self, inputs: Inputs) -> np.ndarray:
        """Return the votes on many rows by one product of matrices."""
        learner, task = self.learner, self.learner.task
        scores = learner.score_rows(inputs)
        pairs = zip(learner.members, scores, strict=True)
        made = [member.top_rows(own) for member, own in pairs]
        weights = np.tile(learner.shares.now, (scores.shape[1], 1))
        return task.predictions(vote(task, made, weights))

    def _losses_of(self, predictions: Sequence[Prediction], labels: Labels) -> list[float]:
        if self.learner.task.answers.zero_one and not self.abstains:
            known = zip(predictions, np.asarray(labels).tolist(), strict=True)
            return [float(prediction != label) for prediction, label in known]
        pairs = zip(predictions, labels, strict=True)
        return [self.loss_of(prediction, label) for prediction, label in pairs]

    def loss_of(self, prediction: Prediction, label: Label) -> float:
        """Return the loss of a prediction; a class that was never learned counts as wrong."""
        task = self.learner.task
        if not task.answers.zero_one:
            return float(task.loss(prediction, label))
        none = self.abstains and (prediction is None or prediction < 0)
        return task.doubt.cost if none else float(prediction != label)

    def save(self, path: str | Path) -> Path:
        """Write the model to one file of plain data."""
        return archive.write(path, *self.to_saved())

    def to_saved(self) -> Saved:
        """Return all of the model as plain data and arrays."""
        about, arrays = self.learner.to_saved()
        about["table"] = table = self.encoder.config()
        if self.encoder.labels.grows:  # without those of rows that were not learned from
            table["labels"]["values"] = table["labels"]["values"][: self.classes]
        if self.sets is not None:
            about["sets"], own = self.sets.to_saved()
            arrays |= {f"{SETS}{name}": array for name, array in own.items()}
        if self.scaling is not None:
            about["documents"] = self.scaling.config()
            arrays["documents"] = self.scaling.state
        about["run"] = {
            "name": self.about,
            "loss": self.loss,
            "largest_risk": self.largest_risk,
            "totals": self.totals.tolist(),
            "baselines": self.baselines.state(),
            "baseline_losses": self.baseline_losses.tolist(),
            "stretches": [list(stretch) for stretch in self.stretches],
            "balance": None if self.balance is None else self.balance.to_plain(),
            "predicted": self.predicted,
            "late": self.late,
        }
        return about, arrays

    def _resume_losses(self, saved: Any) -> None:
        """Go on with the losses of baselines; older files have none."""
        if saved is not None:
            losses = np.array(saved, dtype=np.float64)
            if losses.shape != self.baseline_losses.shape or not (losses >= 0.0).all():
                raise InputError(f"baselines cannot have paid {saved!r:.80}")
            self.baseline_losses = losses

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read what :meth:`save` wrote, or refuse the file."""
        return cls.from_saved(path, *archive.read(path))

    @classmethod
    def from_saved(cls, path: str | Path, about: Json, arrays: dict[str, np.ndarray]) -> Model:
        """Return the model from the content of a file."""
        if "table" not in about or about.get("kind") != "Committee":
            raise InputError(
                f"{path} does not know the columns of a table: expected a model written by "
                "driftline run"
            )
        learner = loaded(path, about, arrays)
        try:
            run = about["run"]
            made = cls(learner, Encoder.from_config(about["table"]), str(run["name"]))
            made.loss, made.largest_risk = float(run["loss"]), float(run["largest_risk"])
            made.baselines.resume(run["baselines"])
            made._resume_losses(run.get("baseline_losses"))
            made.stretches = _stretches(run.get("stretches"), learner.rounds)
            made.predicted = int(run.get("predicted", learner.rounds))
            made.late = run.get("late") is True
            if made.balance is not None:
                made.balance = Balance.from_plain(run["balance"])
            if "sets" in about:
                own = {k.removeprefix(SETS): a for k, a in arrays.items() if k.startswith(SETS)}
                made.sets = SetLevel.from_saved(about["sets"], own)
                if len(made.sets.waiting) != learner.waits:
                    raise InputError("its sets wait for other labels than its learner")
            if "documents" in about:
                made.scaling = Standardiser.from_config(about["documents"], arrays["documents"])
            totals = np.array(run["totals"], dtype=np.float64)
            fits = _features(made) in (None, made.encoder.features)
            if made.encoder.labels.task != learner.task or not fits:
                raise InputError("its columns and its learner do not fit each other")
            sums = [*totals.tolist(), made.loss, made.largest_risk]
            if totals.shape != made.totals.shape or not all(0.0 <= s < np.inf for s in sums):
                raise InputError(f"losses of {len(learner.members)} members cannot be {sums}")
        except DAMAGE as error:
            raise InputError(f"{path} is damaged or was edited: {error}") from error
        made.totals = totals
        return made


def _stretches(saved: Any, rounds: int) -> tuple[Stretch, ...]:
    """Return stretches from a file; an older one has rounds of weight 1 only."""
    if saved is None:
        return stretches_of(None, rounds)
    made = tuple(Stretch(float(scale), int(n), float(weight)) for scale, n, weight in saved)
    sums = [number for stretch in made for number in stretch]
    if sum(stretch.rounds for stretch in made) > rounds or not all(0.0 < n < np.inf for n in sums):
        raise InputError(f"{rounds} rounds cannot have the weights {made}")
    return made


def _features(model: Model) -> int | None:
    """Return how many features a model scales before it learns from them."""
    scaling = model.learner.scaling if model.scaling is None else model.scaling
    return None if scaling is None else scaling.features
