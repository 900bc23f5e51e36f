"""Several learners side by side, combined by weights that follow their losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftline import archive
from driftline.committee.shares import Shares
from driftline.committee.together import Together
from driftline.committee.trace import CommitteeTrace, First
from driftline.committee.vote import drawn, vote, vote_factor, vote_one
from driftline.errors import InputError
from driftline.learner import OGD, Mark, row_of
from driftline.models import Rows, Standardiser, fingerprint, largest_entry, refuse
from driftline.parts import Part, largest_number
from driftline.record import Record, checked_stream
from driftline.turn import Turn

__all__ = ["Committee", "CommitteeRound"]

#: Members play pieces of at most so many entries, which lie in the processor's cache together,
#: and of at least so many rows.
MOST_ENTRIES, FEWEST_ROWS = 1 << 19, 64

#: No step of compiled parts overflows while inputs have no larger entry, and parts no larger
#: constant: the largest product, of five constants and three norms, stays below 1e140. In single
#: precision the norm of an input must stay below 1e19.
LARGEST_ENTRY, LARGEST_CONSTANT = 1e12, 1e9


class CommitteeRound(NamedTuple):
    """What happened in one round: the prediction, its loss, and the weights behind it."""

    prediction: Any
    risk: float
    target_loss: float
    weights: np.ndarray


class _Mark(NamedTuple):
    members: list[Mark]
    scaling: Standardiser | None


class Committee:
    """Learners of the same task under one vote.

    Every member learns from every round as if it were alone. The committee's weights move by the
    members' expected target losses (:class:`~driftline.committee.Shares`), and its prediction is

    - with ``combine="vote"``, the weighted vote of their predictions, which is certain. Where the
      loss is a metric, it costs at most twice the weighted average of the members;
    - with ``combine="draw"``, that of a member drawn by its weight. Its expected loss is the
      weighted average of theirs, at most that of the best sequence of members plus the regret
      of the weights (``shares.regret_bound``), and each member has its own bound.

    Parameters
    ----------
    members
        Learners that have not played yet.
    combine
        ``"vote"`` or ``"draw"``.
    scaling
        What makes inputs of one scale of them, such as
        :class:`~driftline.models.Standardiser`; None leaves them as they are.
    seed
        Of the generator that members are drawn with.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=2000, flips=3, seed=0)
    >>> losses = [dl.losses.Scaled(dl.losses.Logistic(stream.task), c) for c in (2.0, 8.0)]
    >>> committee = Committee([dl.OGD(loss, dl.decoders.Argmax(loss)) for loss in losses])
    >>> committee.run(stream)
    CommitteeTrace(2000 rounds, 2 members, target loss 74, best member 73)
    """

    def __init__(
        self,
        members: Sequence[OGD],
        combine: str = "vote",
        *,
        scaling: Standardiser | None = None,
        seed: int | None = 0,
        _played: bool = False,
    ):
        self.members = list(members)
        if not self.members:
            raise InputError("a committee needs 1 member or more")
        self.task: Any = self.members[0].task
        if any(member.task != self.task for member in self.members):
            raise InputError("the members of a committee must have the same task")
        if not _played and any(member.rounds for member in self.members):
            raise InputError("the members of a committee must not have played before")
        if combine not in ("vote", "draw"):
            raise InputError(f"combine must be 'vote' or 'draw', not {combine!r}")
        if scaling is not None and self.task.ragged:
            raise InputError(f"only plain rows can be scaled, not those of {self.task!r}")
        self.combine, self.scaling = combine, scaling
        self._turn = Turn()
        self._together: Together | None = None  # made when members have weights
        self._sure = all(map(_never_refuses, self.members))
        self.shares = Shares(len(self.members))
        self._generator = _generator(seed)
        self._ahead: float | None = None  # drawn by looking, not yet used up

    def run(
        self,
        inputs: Any,
        labels: Any = None,
        *,
        seed: int | None = None,
        progress: Callable[[int], None] | None = None,
        audit: bool | None = None,
    ) -> CommitteeTrace:
        """Play a stream: every row is predicted before it is learned from.

        With ``seed`` all generators are reset. If the input is refused, nobody has learned from it;
        nor after an interruption, unless there are more weights than inputs.
        ``audit`` is that of :meth:`~driftline.OGD.run`.
        """
        rows, labels = checked_stream(self.task, inputs, labels)
        with self._turn:
            return self._run(rows, labels, seed, progress, audit)

    def _run(
        self,
        rows: Rows,
        labels: Any,
        seed: int | None,
        progress: Callable[[int], None] | None,
        audit: bool | None,
    ) -> CommitteeTrace:
        cheap = self._cheap(rows)
        keep = cheap if audit is None else audit
        before = self._mark(weights=cheap or keep)
        digest = fingerprint(rows, labels)
        first = First(self.combine, self.rounds, self.shares.copy(), before.scaling, digest)
        try:
            records = self._play(rows, labels, seed, progress)
        except BaseException:
            self._go_back(before)
            raise
        if seed is not None:
            self._generator, self._ahead = _generator(seed), None
        randomness = self._generator.bit_generator.state
        first = first._replace(generator=randomness, ahead=self._ahead)
        marks = before.members if keep else [None] * len(records)
        ended = zip(self.members, records, marks, strict=True)
        traces = tuple(member.end(record, mark) for member, record, mark in ended)
        return replace(self._combined(traces, labels), first=first)

    def learn_rows(self, inputs: Any, labels: Any) -> None:
        """Do all that :meth:`run` does, but keep no trace: for many short streams."""
        rows, labels = checked_stream(self.task, inputs, labels)
        with self._turn:
            before = self._mark(weights=self._cheap(rows))
            try:
                records = self._play(rows, labels, None, None)
            except BaseException:
                self._go_back(before)
                raise
            self._weigh(np.stack([record.risk for record in records], axis=1))
            if self.combine == "draw":
                self._take_uniforms(rows.rounds)

    def _cheap(self, rows: Rows) -> bool:
        """Say whether weights are copied before a run: where that is cheap, or a member may refuse.

        Where they are not, all rows are looked at first.
        """
        if all(member.cheap(rows.size) for member in self.members) or not self._bears(rows):
            return True
        if (bad := rows.first_bad_row()) is not None:
            refuse(rows, bad)
        return False

    def _bears(self, rows: Rows) -> bool:
        """Say whether no member can refuse rows that are finite."""
        return self._sure and (self.scaling is not None or largest_entry(rows) <= LARGEST_ENTRY)

    def _play(
        self, rows: Rows, labels: Any, seed: int | None, progress: Callable[[int], None] | None
    ) -> list[Record]:
        """Let all members play, piece by piece: what one has just read is near for the next."""
        seeds = [None if seed is None else seed + j for j in range(len(self.members))]
        pairs = zip(self.members, seeds, strict=True)
        records = [member.begin(labels, own) for member, own in pairs]
        size = max(MOST_ENTRIES * rows.rounds // max(1, rows.size), FEWEST_ROWS)
        size = min(size, rows.block)
        for start in range(0, rows.rounds, size):
            stop = min(start + size, rows.rounds)
            piece, at = rows, start
            if self.scaling is not None:
                piece, at = self.scaling.piece(rows, start, stop), 0
            for member, record in zip(self.members, records, strict=True):
                member.go_on(record, piece, at, at + stop - start)
            if progress is not None:
                progress(stop - start)
        return records

    def step(self, x: Any, label: Any) -> CommitteeRound:
        """Play one round: predict, see the label, learn. The same as in :meth:`run`."""
        checked = self.task.check_label(label)
        with self._turn:
            return self._step(x, checked)

    def _step(self, x: Any, checked: Any) -> CommitteeRound:
        made, columns = self._play_one(x, checked)
        risks = columns[1:2]
        weights = self._weigh(risks)
        if self.combine == "draw":
            uniform = self._generator.random() if self._ahead is None else self._ahead
            self._ahead = None
            j = int(drawn(weights, np.array([uniform]))[0])
            risk, loss = float((weights * risks).sum()), float(columns[2, j])
            return CommitteeRound(self.task.prediction(made[j]), risk, loss, weights[0])
        predictions = [self.task.prediction(numbers) for numbers in made]
        prediction, label = vote_one(self.task, predictions, weights[0]), self.task.label(checked)
        if self.task.zero_one:
            loss = float(prediction != label)
        else:
            loss = self.task.loss(prediction, label)
        return CommitteeRound(prediction, loss, loss, weights[0])

    def learn_row(self, x: Any, label: Any) -> None:
        """Do all that :meth:`step` does, but say nothing of the round: neither vote nor loss."""
        checked = self.task.check_label(label)
        with self._turn:
            _, columns = self._play_one(x, checked)
            self._weigh(columns[1:2])
            if self.combine == "draw":
                self._take_uniforms(1)

    def _play_one(self, x: Any, checked: Any) -> tuple[Sequence[np.ndarray], np.ndarray]:
        """Let all members play one round; if one refuses it, nobody has.

        Return their predictions as numbers, and a column of the trace for each.
        """
        row: Any = row_of(self.task, x)
        if self.task.ragged:
            row.check_labels([checked])
        before = None if self._bears(row) else self._mark()
        try:
            row = row if self.scaling is None else self.scaling.piece(row, 0, 1)
            if self._together is None or not self._together.ready(self.members, row):
                self._together = Together.gather(self.members, row, checked)
            if self._together is not None:
                return self._together.play(row, checked)
            pairs = [member.pay(row, checked) for member in self.members]
        except InputError:
            if before is not None:
                self._go_back(before)
            raise
        made, columns = zip(*pairs, strict=True)
        return made, np.hstack([column[:5] for column in columns])

    def predict(self, x: Any) -> Any:
        """Return the prediction that :meth:`step` would make now. Looking changes nothing."""
        with self._turn.looking:
            return self._predict(x)

    def _predict(self, x: Any) -> Any:
        row: Any = row_of(self.task, x)
        if self.scaling is not None:
            row = self.scaling.look_at(row)
        sure = self.scaling is not None  # what was scaled is finite
        made = [member.predict_row(row, sure) for member in self.members]
        if self.combine == "vote":
            return vote_one(self.task, made, self.shares.now)
        if self._ahead is None:
            self._ahead = float(self._generator.random())
        return made[int(drawn(self.shares.now[np.newaxis], np.array([self._ahead]))[0])]

    def score_rows(self, inputs: Any) -> np.ndarray:
        """Return the members' scores of many inputs: members, rows, scores.

        Inputs are scaled as :meth:`~driftline.models.Standardiser.look` does.
        """
        with self._turn.looking:
            rows = inputs if self.scaling is None else self.scaling.look(inputs)
            return np.stack([member.score_rows(rows) for member in self.members])

    def save(self, path: str | Path) -> Path:
        """Write the committee to one file, for :func:`driftline.load`; return where it is."""
        return archive.write(path, *self.to_saved())

    def to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all of the committee as plain data and arrays."""
        with self._turn.looking:
            return self._to_saved()

    def _to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        saved = [member.to_saved() for member in self.members]
        arrays = {f"{j}.{name}": a for j, (_, part) in enumerate(saved) for name, a in part.items()}
        about = {
            "kind": "Committee",
            "members": [part for part, _ in saved],
            "combine": self.combine,
            "scaling": None if self.scaling is None else self.scaling.config(),
            "generator": self._generator.bit_generator.state,
            "ahead": self._ahead,
        }
        if self.scaling is not None:
            arrays["scaling"] = self.scaling.state
        return about, arrays | {"shares": self.shares.state}

    @classmethod
    def from_saved(cls, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Committee:
        """Return the committee that :meth:`to_saved` was asked of."""
        members = []
        for j, part in enumerate(about["members"]):
            start = f"{j}."
            own = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            members.append(OGD.from_saved(part, own))
        scaling = about["scaling"]
        if scaling is not None:
            scaling = Standardiser.from_config(scaling, arrays["scaling"])
        rounds = [member.rounds for member in members]
        if len(set(rounds)) > 1:
            raise InputError(f"the members have played {rounds} rounds: expected the same number")
        committee = cls(members, about["combine"], scaling=scaling, _played=True)
        committee.shares.resume(arrays["shares"])
        committee._generator.bit_generator.state = about["generator"]
        if about["ahead"] is not None and not 0.0 <= about["ahead"] < 1.0:
            raise InputError(f"a random number of {about['ahead']} was never drawn")
        committee._ahead = about["ahead"]
        return committee

    def __reduce__(self) -> Any:
        """Pickle and copy what is saved: compiled code has other addresses elsewhere."""
        about, arrays = self.to_saved()
        return type(self).from_saved, (about, {k: a.copy() for k, a in arrays.items()})

    @property
    def weights(self) -> np.ndarray:
        """The members' weights for the next round."""
        return self.shares.now

    def describe(self) -> str:
        """Say how the committee predicts, who is in it, and with which weight."""
        factor = vote_factor(self.task)
        words = f"at most {factor:g} times" if math.isfinite(factor) else "not bounded by"
        how = {
            "vote": f"weighted vote: {words} the weighted average of members",
            "draw": "a member drawn by weight: at most the best members' loss and the regret of "
            "the weights",
        }
        lines = [f"committee of {len(self.members)}, {how[self.combine]}"]
        if self.scaling is not None:
            lines.append("inputs are standardised as they come: bounds hold for the scaled ones")
        for member, weight in zip(self.members, self.weights, strict=True):
            lines.append(f"  {weight:6.3f}  {member!r}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Name the members."""
        return f"Committee({len(self.members)} members, {self.combine!r}, {self.task!r})"

    # -- behind the scenes

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return self.members[0].rounds

    def _mark(self, weights: bool = True) -> _Mark:
        """Remember where the committee is."""
        scaling = None if self.scaling is None else self.scaling.copy()
        weights = weights or not self._sure
        return _Mark([member.mark(weights) for member in self.members], scaling)

    def _go_back(self, before: _Mark) -> None:
        """Be where a mark was made."""
        for member, mark in zip(self.members, before.members, strict=True):
            member.go_back(mark)
        self.scaling = before.scaling

    def _take_uniforms(self, count: int) -> np.ndarray:
        ahead = [] if self._ahead is None else [self._ahead]
        self._ahead = None
        return np.r_[ahead, self._generator.random(count - len(ahead))]

    def _weigh(self, risks: np.ndarray) -> np.ndarray:
        """Return the weights before every round, and let them learn from the risks."""
        return self.shares.update(risks, self.task.largest_loss)

    def _combined(self, traces: tuple[Any, ...], labels: Any) -> CommitteeTrace:
        """Let the weights move over what members did, and combine their predictions."""
        risks = np.stack([trace.risk for trace in traces], axis=1)
        weights = self._weigh(risks)
        made = [np.atleast_2d(trace.prediction.T).T for trace in traces]
        if self.combine == "vote":
            rows = vote(self.task, made, weights)
            target = self._losses(rows, labels)
            return self._trace(target, target, rows, weights, risks, traces)
        chosen = drawn(weights, self._take_uniforms(len(risks)))
        rows = np.stack(made)[chosen, np.arange(len(chosen))]
        target = np.stack([trace.target_loss for trace in traces])[chosen, np.arange(len(chosen))]
        return self._trace((weights * risks).sum(axis=1), target, rows, weights, risks, traces)

    def _trace(
        self,
        risk: np.ndarray,
        target: np.ndarray,
        rows: np.ndarray,
        weights: np.ndarray,
        risks: np.ndarray,
        traces: tuple[Any, ...],
    ) -> CommitteeTrace:
        return CommitteeTrace(risk, target, self.task.predictions(rows), weights, risks, traces)

    def _losses(self, rows: np.ndarray, labels: Any) -> np.ndarray:
        """Return the target loss of every prediction."""
        if self.task.zero_one:
            return (rows != np.asarray(labels)).any(axis=1).astype(np.float64)
        task = self.task
        pairs = zip(rows, labels, strict=True)
        return np.array([task.loss(task.prediction(p), task.label(y)) for p, y in pairs])


def _never_refuses(member: OGD) -> bool:
    """Say whether a member cannot refuse a row of modest size.

    Inside a ball, with constants of modest size, neither scores nor steps overflow. Nothing is
    known of parts without kernels.
    """
    modest = all(largest_number(p) <= LARGEST_CONSTANT for p in member.parts if isinstance(p, Part))
    return modest and member.parts.have_kernels and math.isfinite(member.domain.diameter)


def _generator(seed: int | None) -> np.random.Generator:
    """Return a generator whose numbers are neither a stream's nor a member's."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
