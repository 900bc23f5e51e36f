"""Several learners side by side, combined by weights that follow their losses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from driftline.committee.acceptance import Acceptance
from driftline.committee.account import PEAK, Account, Watched
from driftline.committee.beliefs import Beliefs
from driftline.committee.combine import Combine, Made, rule_of
from driftline.committee.groups import Groups, Played
from driftline.committee.guard import Guard
from driftline.committee.mixture import Mixed, Mixture
from driftline.committee.one_book import OneBook
from driftline.committee.shares import Shares
from driftline.committee.state import CommitteeState, all_arrays, different_arrays
from driftline.committee.trace import GUARDED, AuditOrigin, CommitteeTrace
from driftline.detectors import AlarmLog
from driftline.errors import InputError, TornError
from driftline.features import Standardiser
from driftline.inputs import Rows
from driftline.inputs.flags import every
from driftline.kernels import ROW
from driftline.learner import (
    CODES,
    Asked,
    Member,
    Shell,
    Shield,
    Ticket,
    Waiting,
    check_longer,
    gives_probabilities,
    tell_rows,
)
from driftline.state import Checkpoint, Draws, State
from driftline.state.loading import member_from
from driftline.tasks import with_classes
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Input, Inputs, Json, Label, Labels, Prediction, Saved

__all__ = ["Committee", "CommitteeRound"]

#: Members play pieces of at most so many entries, which lie in the processor's cache together,
#: and of at least so many rows.
MOST_ENTRIES, FEWEST_ROWS = 1 << 19, 64

#: More features than members with maps of dense rows take.
WIDE = 1 << 20

#: Where scores are averaged, pieces have at most so many of them.
MOST_SCORES = 1 << 18


class CommitteeRound(NamedTuple):
    """What happened in one round: the prediction, its loss, and the weights behind it.

    ``member_risk`` has the members' expected losses.
    """

    prediction: Prediction
    risk: float
    target_loss: float
    weights: np.ndarray
    member_risk: np.ndarray


class Committee(Shell):
    """Learners of the same task under one vote.

    Every member learns from every round as if it were alone. The committee's weights move by the
    members' expected target losses (:class:`~driftline.committee.Shares`), and its prediction is

    - with ``combine="vote"``, the weighted vote of their predictions;
    - with ``combine="mix"``, for classes and signs, the most probable label in the mean of members'
      probabilities (:mod:`driftline.committee.mixture`), which errs least;
    - with ``combine="first"``, that of the first member.

    With a ``budget`` a guard holds predictions to the bound of a theorem, whatever the rule: see
    :mod:`driftline.committee.account`. Without one, nothing is promised of the committee, and its
    members have their own bounds.

    Parameters
    ----------
    members
        Learners of any kind that have not played yet: see :class:`~driftline.learner.Member`.
    combine
        ``"vote"``, ``"mix"`` or ``"first"``, which needs a guard.
    budget
        By how much predictions may exceed, in expectation, what a theorem allows, in units of the
        task's largest loss; needs a member with such a theorem. None for no guard.
    largest_weight
        The largest sample weight that the guard promises for; heavier rounds count all the same.
    seed
        Of the random numbers by which a guard predicts.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=2000, flips=3, seed=0)
    >>> losses = [dl.losses.Scaled(dl.losses.Logistic(stream.task), c) for c in (2.0, 8.0)]
    >>> committee = Committee([dl.OGD(loss, dl.decoders.Argmax(loss)) for loss in losses])
    >>> committee.run(stream)
    CommitteeTrace(2000 rounds, 2 members, target loss 74, best member 73)
    """

    _BRANCH = 2

    _learned = (
        *Shell._learned,
        "members",
        "_all",
        "shares",
        "_mixture",
        "_beliefs",
        "guard",
        "_alarms",
        "_cut_short",
    )
    _derived = ("_groups", "_acceptance")
    _unlearned = ("_all",)

    def __init__(
        self,
        members: Sequence[Member],
        combine: str = "vote",
        *,
        budget: float | None = None,
        largest_weight: float = 1.0,
        seed: int | None = 0,
        _played: bool = False,
    ):
        if not isinstance(members, Iterable):
            raise InputError(f"expected a list of learners, but got {members!r:.80}")
        self.members = list(members)
        if not self.members:
            raise InputError("a committee needs 1 member or more")
        for member in self.members:
            if not isinstance(member, Member):
                raise InputError(
                    f"members must be learners such as dl.OGD, but one is {member!r:.80}"
                )
            if not member.feedback.full:
                raise InputError(
                    f"members of a committee learn from labels, but {member!r:.80} does not: its "
                    "policies are a committee of their own"
                )
        if len(set(map(id, self.members))) < len(self.members):
            raise InputError("a committee has the same learner twice: it would learn twice a round")
        task = self.members[0].task
        if any(member.task != task for member in self.members):
            raise InputError("the members of a committee must have the same task")
        if not _played and any(member.rounds for member in self.members):
            raise InputError("the members of a committee must not have played before")
        rule = rule_of(combine)
        rule.check(task)
        super().__init__(self.members[0].task, seed)
        if budget is None and rule.levels > 1:
            raise InputError(f"combine={rule.name!r} needs a guard: give a budget")
        self._rule = rule
        self._promise = None if budget is None else (budget, largest_weight)
        #: The account between predictions and what a theorem allows, None without a budget.
        self.guard: Account | None = None
        self._all = self.members
        self._seat(self.members)

    def _seat(self, members: Sequence[Member]) -> None:
        """Let these be the members; maps that they share must have learned the same."""
        self.members = list(members)
        self._groups = Groups(self.members)
        self._acceptance = Acceptance(self.members, self._layout.ragged)
        self._cut_short = False
        self._shielding = Shield()
        self.shares, self._alarms = Shares(len(self.members)), AlarmLog()
        nats, mixes = [member._fixed.nats for member in self.members], self.rule.scored
        self._mixture = Mixture(self.members) if mixes else None
        self._beliefs = None
        if not mixes and None not in nats:
            self._beliefs = Beliefs(np.array(nats, dtype=np.float64))
        if self._promise is not None:
            self.guard = self._guard_of(self.members)
            self.shares = Shares(len(self.members), self.guard.weighed)

    @property
    def _seats(self) -> tuple[int, ...]:
        """The places of the members among those that there were before the first rows."""
        if self.members is self._all:
            return tuple(range(len(self._all)))
        places = {id(member): place for place, member in enumerate(self._all)}
        return tuple(places[id(member)] for member in self.members)

    @_seats.setter
    def _seats(self, places: tuple[int, ...]) -> None:
        if places != self._seats:
            self._seat([self._all[place] for place in places])

    def _guard_of(self, members: Sequence[Member]) -> Account:
        """Return the guard, or one for those members that are left in by the first rows."""
        if self.guard is not None and self.guard.members == len(members):
            return self.guard
        assert self._promise is not None
        made: Account
        if self.rule.scored:
            made = Guard(self.task, members, *self._promise, self.rule.levels)
        else:
            made = OneBook(self.task, members, *self._promise)
        if self.guard is not None:  # what is outstanding is reserved
            made.reserves, made.state[PEAK] = dict(self.guard.reserves), self.guard.state[PEAK]
            made.settle(self._outstanding, None)
        return made

    @property
    def _width(self) -> int:
        """How many numbers are kept of a round, beside what members have paid, until its label."""
        return self.shares.kept + (0 if self.guard is None else self.guard.kept)

    def _meet(self, rows: Rows) -> None:
        """Leave out members whose maps do not suit the first rows."""
        suited = self._suited(rows.features, rows.transposed)
        if len(suited) < len(self.members):
            self._seat(suited)

    def _suited(self, features: int, sparse: bool) -> list[Member]:
        """Return the members whose maps suit first rows of this shape; later ones are for all."""
        if self.features is not None:
            return self.members
        suited = [m for m in self.members if m.map is None or m.map.suits(features, sparse)]
        if not suited:
            raise InputError(
                f"no member's map suits {'sparse' if sparse else 'dense'} rows of {features} "
                "features"
            )
        return suited

    # -- rounds

    def step(self, x: Input, label: Label) -> CommitteeRound:
        """Play one round: predict, see the label, learn. The same as in :meth:`run`."""
        row, checked = self._row(x), self.task.labels.check(label)
        with self._turn.lock, self._shield():
            self._turn.check()
            number = self._tickets
            played, mixed, watched = self._play_one(row, checked, number)
            self._tickets = number + 1
            return self._round(*played, mixed, watched, checked)

    def _round(
        self,
        made: Sequence[np.ndarray] | np.ndarray,
        columns: np.ndarray,
        weighed: Mixed | np.ndarray,
        watched: Watched | None,
        checked: Label,
    ) -> CommitteeRound:
        """Return what happened in one round."""
        risks, task, rule = columns[ROW["risk"]], self.task, self.rule
        mixed = weighed.predictions if isinstance(weighed, Mixed) else None
        weights = weighed.weights if isinstance(weighed, Mixed) else weighed
        if watched is not None:
            prediction, risk = (
                task.predictions.value(watched.played[0]),
                float(watched.paid[0, 0]),
            )
            losses = watched.losses
            loss = (
                task.loss(prediction, task.labels.value(checked)) if losses is None else losses[0]
            )
            return CommitteeRound(prediction, risk, float(loss), weights[0], risks)
        if task.zero_one:
            one = rule.one(task, Made(made, weights, mixed), task.labels.value(checked))
            if one is not None:
                return CommitteeRound(*one, one[1], weights[0], risks)
        rows = rule.predictions(task, Made([own[np.newaxis] for own in made], weights, mixed))
        loss = float(task.many.losses(rows, [checked])[0])
        return CommitteeRound(task.predictions.value(rows[0]), loss, loss, weights[0], risks)

    def _learn_one(self, row: Rows, label: Label, number: int) -> None:
        self._play_one(row, label, number)

    def _learn_late(self, row: Rows, label: Label, number: int, paid: np.ndarray | None) -> None:
        """Let members learn at the weights of now, and move weights by what they predicted then."""
        self._play_one(row, label, number, paid)

    def _seated(self, rows: Rows) -> int:
        """Return how many members there will be after these rows: the first may leave some out."""
        return len(self._suited(rows.features, rows.transposed))

    def tell_risks(self, tickets: Sequence[Ticket], labels: Labels) -> np.ndarray:
        """Do what :meth:`tell_rows` does; return what members had to expect to pay, a row each.

        Expected when tickets were asked for, given the labels of now.
        """
        paid = tell_rows(self, tickets, labels, None)
        assert paid is not None, "there are no tickets"
        return paid[:, : -self._width]

    def _accepts(self, rounds: Sequence[Rows]) -> bool:
        sure, dtype = self._acceptance.is_sure, self._dtype
        return all(sure(row) and row.first_bad_row(dtype) is None for row in rounds)

    def _paid_then(
        self, tickets: Sequence[Ticket], labels: CheckedLabels, first: Rows
    ) -> np.ndarray:
        """Return what was to be expected of tickets when they were asked for, given labels.

        First of members, then of sets of weights, as shares of the largest loss; and last what a
        guard has kept.
        """
        members, task = self._seated(first), self.task
        count, known = members + self.shares.kept, dict[bytes, Any]()
        if self._certain:
            codes = np.concatenate([ticket.checked_made(count) for ticket in tickets])
            truth = np.repeat(np.reshape(labels, (len(tickets), 1)), count, axis=0)
            paid = task.many.losses(codes[:, np.newaxis], truth).reshape(len(tickets), count)
            return paid if self.guard is None else np.hstack([paid, self._then(tickets, labels)])
        means: list[Any] = [ticket.means for ticket in tickets]
        targets, offsets = [], []
        for i, (ticket, label) in enumerate(zip(tickets, labels, strict=True)):
            key = label.tobytes() if isinstance(label, np.ndarray) else repr(label).encode()
            if key not in known:
                truth = task.labels.value(label)
                known[key] = task.encode(truth), task.offset(truth)
            target, offset = known[key]
            own = means[i]
            if type(own) is not np.ndarray or own.shape != (count, len(target)):
                means[i] = self._fitted(ticket, count, len(target))
            elif own.dtype != np.float64:
                ticket.checked_means(count)  # which refuses it
            targets.append(target)
            offsets.append(offset)
        if self._layout.ragged:
            parts = zip(means, targets, offsets, strict=True)
            made = np.array([_expected(own, target, offset) for own, target, offset in parts])
        else:
            stacked = np.array(targets)[:, np.newaxis], np.array(offsets)[:, np.newaxis]
            made = _expected(np.array(means), *stacked)
        if not np.isfinite(made).all():
            for ticket in tickets:
                ticket.checked_means(count)
            raise InputError("the tickets' distributions are so large that their losses overflow")
        made = np.maximum(made, 0.0)
        made[:, members:] /= self._largest_loss
        if self.guard is None:
            return made
        return np.hstack([made, self._then(tickets, labels, made)])

    def _then(
        self, tickets: Sequence[Ticket], labels: CheckedLabels, paid: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the guard's rows of tickets, given labels and the losses members expected then."""
        guard, rows = self.guard, list[np.ndarray]()
        assert guard is not None
        for i, (ticket, label) in enumerate(zip(tickets, labels, strict=True)):
            more: tuple[float, ...] = ()
            if isinstance(guard, OneBook) and paid is not None:
                more = (paid[i, guard.place],)
            rows.append(guard.then(ticket, label, *more))
        return np.array(rows)

    def _learn_ticket(
        self, row: Rows, label: Label, ticket: Ticket, paid: np.ndarray | None
    ) -> None:
        if self.guard is None:
            super()._learn_ticket(row, label, ticket, paid)
            return
        if ticket.rounds == self.rounds or paid is None:  # all but the guard knows it anyway
            known = self._paid_then([ticket], [label], row)[0, -self.guard.kept :]
            paid = np.r_[np.full(len(self.members) + self.shares.kept, np.nan), known]
        self._play_one(row, label, ticket.number, paid)

    def _fitted(self, ticket: Ticket, count: int, width: int) -> np.ndarray:
        """Return means of a ticket from before new classes."""
        own = ticket.checked_means(count, finite=False)
        if own.shape[1] != width:
            own = self.task.many.widened(own, width)  # classes that nobody predicted then
        if own.shape[1] != width:
            raise InputError(
                f"ticket {ticket.number} is for {own.shape[1]} scores, but its label for {width}"
            )
        return own

    def _play_one(
        self, row: Rows, checked: Label, number: int, paid: np.ndarray | None = None
    ) -> tuple[Played, Mixed | np.ndarray, Watched | None]:
        """Let all members play one round, and the weights learn; if one refuses it, nobody has.

        ``paid`` is what was predicted has cost, if that was in an earlier state.
        Return the members' predictions as numbers with a column of the trace for each, the
        weights before the round, or what the mixture has said, and what the guard has.
        """
        if self._cut_short:
            self._check_whole()
        self._check_features(row)
        if self._layout.ragged:
            row.check_labels([checked])
        row.labels = [checked]
        before, accepts = None, self._acceptance
        if not accepts.is_sure(row):
            before = self._checkpoint(weights=True)
        try:
            if not accepts.like_last(row) and self.features is None:
                self._meet(row)
            played = self._groups.play_one(row, checked, number)
            weighed, watched = self._weigh_one(played, checked, number, paid)
            self._acceptance.note(row)  # another one, if members were left out
            return played, weighed, watched
        except BaseException as error:
            if before is not None:
                self._rollback(before)
            elif not isinstance(error, InputError) or row.first_bad_row() is None:
                self._cut_short = True  # what is not finite is refused before anything moves
            raise

    def _room(self, labels: CheckedLabels) -> Batch:
        members = tuple(member._room(labels) for member in self.members)
        count = len(labels)
        columns = {name: np.empty(count) for name in ("risk", "target_loss")}
        columns |= {name: np.empty((count, len(members))) for name in ("weights", "member_risk")}
        columns["prediction"] = np.empty_like(members[0]["prediction"])
        if self.guard is not None:
            columns |= {name: np.empty(count) for name in GUARDED}
        return Batch(columns, members)

    def _play(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        """Let all members play some rows, and the weights learn from what happened."""
        mixture, guard, scores, given = self._mixture, self.guard, None, room
        if mixture is not None:
            scores = mixture.room(stop - start)
            given = room.scored_in(mixture.parts(scores))
        elif isinstance(guard, OneBook) and room.late is not None and not self._layout.ragged:
            given = room.scored_at(guard.place, self.task.dim)
        self._groups.play(rows, start, stop, labels, number, given)
        risks = room["member_risk"]
        np.stack([batch["risk"] for batch in room.members], axis=1, out=risks)
        paid, counts, asked = risks, room.columns.get("sample_weight"), None
        if room.late is not None:  # weights move by what was predicted, when it is told
            late, first = room.late
            rest = self._width - self.shares.kept
            given_late = (first, first + len(risks), risks, self.shares.kept, rest)
            paid, counts, asked = late.settle(*given_late)
        if mixture is not None and scores is not None:
            mixture.fill(scores, [batch["prediction"] for batch in room.members])
            alarms, out = self._alarms, room["weights"]
            learned: Any = {"sample_weight": counts, "alarms": alarms, "late": asked, "out": out}
            mixed = mixture.learn(self.shares, scores, paid, labels, **learned)
            room.columns["mixed"], room.columns["chances"] = mixed.predictions, mixed.probabilities
            if isinstance(guard, Guard):
                leading = room.members[0]["prediction"]
                champions = self.rule.champions(mixed.predictions, scores, leading)
                uniforms = self._uniforms_of(room, number)
                watched = guard.learn(scores, champions, labels, uniforms, counts, asked)
                room.columns.update(watched.columns)
            return
        losses = np.stack([batch["loss"] for batch in room.members], axis=1)
        believed = None
        if "scores" in room.members[0].columns:
            believed = room["weights"] if self._beliefs is None else np.empty_like(risks)
            room.columns["beliefs"] = believed
        self._weigh(paid, losses, counts, room["weights"], asked, believed)
        if isinstance(guard, OneBook):
            made = Made([own["prediction"] for own in room.members], room["weights"])
            champions, book = self.rule.predictions(self.task, made), given.members[guard.place]
            learned = guard.learn(champions, book.columns, labels, counts, asked)
            room.columns.update(learned.columns | {"voted": champions})

    def _check_waiting(self, waiting: Waiting) -> None:
        members, kept = len(self.members), waiting.kept
        if kept is None or kept.shape[1] != members + self._width:
            raise InputError(f"rounds that wait must have what {members} members paid for them")
        paid, guarded = np.split(kept, [members + self.shares.kept], axis=1)
        largest = 1.0 if self.rule.scored else math.inf  # of a set of weights
        if (paid < 0.0).any() or (paid[:, members:] > largest).any():
            raise InputError(f"members cannot have paid {kept!r:.60}")
        if self.guard is not None:
            self.guard.check_kept(guarded)

    def _combine(self, labels: CheckedLabels, number: int, room: Batch) -> None:
        for name, column in self._combined(room, labels, number).items():
            room[name][:] = column

    def _batch_size(self, rows: Rows) -> int:
        size = max(MOST_ENTRIES * rows.rounds // max(1, rows.size), FEWEST_ROWS)
        own = [member._batch_size(rows) for member in self.members]
        if self._mixture is not None:
            size = min(size, max(FEWEST_ROWS, MOST_SCORES // self._mixture.room(1).size))
        return max(1, min(size, *own))

    # -- looking

    def _look(self, rows: Rows, numbers: np.ndarray, whole: bool = True) -> Asked:
        if self._cut_short:
            self._check_whole()
        suited = self._suited(rows.features, rows.transposed)
        looks = self._groups.look_at(rows, suited, numbers, whole or self.rule.scored)
        seated = len(looks) == len(self.members)
        guard = None if self.guard is None else self._guard_of(suited)
        weighed = None if guard is None else guard.weighed
        shares = self.shares if seated else Shares(len(looks), weighed)
        made, mixed, watched = [own.predictions for own in looks], None, None
        if self._mixture is not None:
            mixture = self._mixture if seated else Mixture(suited)
            mixed, scores = self._mixed(mixture, shares, looks)
            weights, now = mixed.weights, mixed.weights[0]
            if isinstance(guard, Guard):
                draws = self._draws.at(numbers)[:, 0]
                champions = self.rule.champions(mixed.predictions, scores, made[0])
                watched = guard.look(scores, champions, draws, reserves=whole)
        else:
            now = shares.now
            weights = now[np.newaxis] if rows.rounds == 1 else np.tile(now, (rows.rounds, 1))
        codes = None if mixed is None else mixed.predictions
        predictions = self.rule.predictions(self.task, Made(made, weights, codes))
        if isinstance(guard, OneBook):
            watched, voted = (
                self._looked(guard, predictions, looks[guard.place], whole),
                predictions,
            )
        book = None if watched is None else watched.book
        predictions = predictions if watched is None else watched.played
        chances = None if mixed is None else mixed.probabilities
        if not whole:
            return Asked(predictions, probabilities=chances)
        if mixed is not None and self._certain:
            theirs = np.hstack([*made, mixed.theirs]).astype(CODES)
            encoded = self.task.many.encode_losses(predictions, self.task.dim)
            if isinstance(guard, Guard) and watched is not None:
                encoded = guard.means(watched, encoded)
            return Asked(predictions, encoded, None, None, None, chances, theirs, book)
        if isinstance(looks[0].mean, np.ndarray):  # all of one size
            members = np.array([own.mean for own in looks]).swapaxes(0, 1)
            scores = np.concatenate([own.scores for own in looks])
            if isinstance(guard, OneBook) and gives_probabilities(self.task):
                chances = self._probabilities(scores, self._believed(len(scores)), voted)
            own = self._means(predictions, members, shares, guard, mixed, watched)
            return Asked(predictions, *own, None, scores, chances, None, book)
        rounds = zip(*(own.mean for own in looks), strict=True)
        parts = [
            self._means(predictions[t : t + 1], np.array([own]), shares, guard, None, watched, t)
            for t, own in enumerate(rounds)
        ]
        mean, means = [mean[0] for mean, _ in parts], [own[0] for _, own in parts]
        return Asked(predictions, mean, means, book=book)

    def _looked(self, guard: OneBook, predictions: np.ndarray, own: Asked, whole: bool) -> Watched:
        """Return the guard's predictions of rounds, given those of the book's member."""
        encoded = None
        if whole and not self.task.layout.ragged:
            encoded = self.task.many.encode_losses(predictions, self.task.dim)
        scores = None if own.scores is None else own.scores[0]
        return guard.look(predictions, own.predictions, encoded, own.mean, scores, whole)

    def _mixed(
        self, mixture: Mixture, shares: Shares, looks: Sequence[Asked]
    ) -> tuple[Mixed, np.ndarray]:
        """Return what averaged probabilities say of rounds that members have looked at.

        And the members' scores, by round, label and member.
        """
        scores = mixture.room(len(looks[0].predictions))
        for part, own in zip(mixture.parts(scores), looks, strict=True):
            assert own.scores is not None
            part[:] = own.scores[0]
        mixture.fill(scores, [own.predictions for own in looks])
        return mixture.look(shares, scores), scores

    def _ask(
        self, rows: Rows, numbers: np.ndarray | None = None, probabilities: bool = False
    ) -> list[Ticket]:
        if self.guard is None:
            return super()._ask(rows, numbers, probabilities)
        with self._turn.lock, self._shield():
            tickets = super()._ask(rows, numbers, probabilities)
            if numbers is None:
                self.guard.reserve(tickets)
                self._keep_waiting()
            return tickets

    def admit(self, ticket: Ticket) -> Ticket:
        """Return the ticket of a copy as one of this learner's own, which is outstanding here.

        See :meth:`Learner.admit`. What the copy has predicted is reserved here. Copies do not know
        of each other's reserves: together they may exceed the budget, and so may the account.
        """
        with self._turn.lock, self._shield():
            made = super().admit(ticket)
            if self.guard is not None:
                try:
                    self.guard.reserve([made])
                except InputError:
                    self._take_back(made.number)
                    raise
                self._keep_waiting()
            return made

    def _resume_tickets(self, state: Any) -> None:
        super()._resume_tickets(state)
        self._keep_waiting()

    def _keep_waiting(self) -> None:
        super()._keep_waiting()
        if self.guard is not None:
            self.guard.settle(self._outstanding, None if self._late is None else self._late.kept)

    def _played(self, *given: Any) -> Any:
        made = super()._played(*given)
        with self._turn.lock:
            self._keep_waiting()
        return made

    @property
    def _certain(self) -> bool:
        """Whether tickets have predictions of members: each is certain of one label."""
        return self._mixture is not None and self._takes_top

    def _means(
        self,
        predictions: np.ndarray,
        members: np.ndarray,
        shares: Shares,
        guard: Account | None,
        mixed: Mixed | None = None,
        watched: Watched | None = None,
        first: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean loss encodings of rounds; and those of members, and of sets.

        ``first`` is the first of these rounds among those that a guard has watched.
        """
        rounds, _, size = members.shape
        if mixed is not None:  # sets are judged by what they predict themselves
            theirs = mixed.theirs.reshape(-1, 1)
            sets = self.task.many.encode_losses(theirs, size).reshape(rounds, -1, size)
        else:
            sets = shares.means(members)
        mean = self.task.many.encode_losses(predictions, size)
        if isinstance(guard, OneBook) and watched is not None:
            acted = np.flatnonzero(watched.paid[first : first + rounds, 0])
            mean[acted] = members[acted, guard.place]
        return mean, np.concatenate([members, sets], axis=1)

    def look(self, inputs: Inputs) -> Asked:
        """Return what would be predicted next for each of many inputs, and by which probabilities.

        The latter if the committee averages probabilities.
        """
        rows = self._layout.rows(inputs)
        with self._turn.lock:
            self._check_features(rows)
            return self._look(rows, np.full(rows.rounds, self._tickets), whole=False)

    def score_rows(self, inputs: Inputs) -> np.ndarray:
        """Return the members' scores of many inputs: members, rows, scores.

        Every input is mapped as if it came next.
        """
        with self._turn.lock:
            return np.stack(self._groups.score_rows(inputs))

    # -- the state as a value

    @property
    def state(self) -> CommitteeState:
        """All that moves when the committee learns, as a value: a copy."""
        with self._turn.lock:
            self._check_whole()
            return self._state(weights=True)

    def _state(self, weights: bool) -> CommitteeState:
        members = tuple(member._state() for member in self.members) if weights else ()
        key, tickets, shares = self._draws.key, self._tickets, self.shares.copy()
        beliefs = None if self._believes is None else self._believes.state.copy()
        alarms, guard = self._alarms.copy(), None if self.guard is None else self.guard.saved()
        learned = (self.rounds, shares, members, beliefs, alarms, guard)
        return CommitteeState(key, tickets, *learned, **self._waiting)

    def restore(self, state: CommitteeState) -> None:
        """Go on from a state, if it can be one of these members."""
        if not isinstance(state, CommitteeState) or state.key is None:
            raise InputError(f"expected a state of a committee, but got {state!r:.80}")
        if not (
            isinstance(state.members, (tuple, list))
            and state.members
            and all(isinstance(member, State) for member in state.members)
        ):
            raise InputError(f"expected states of members, but got {state.members!r:.80}")
        if not isinstance(state.shares, Shares):
            raise InputError(f"expected weights of members, but got {state.shares!r:.80}")
        if not isinstance(state.alarms, AlarmLog):
            raise InputError(f"expected a log of alarms, but got {state.alarms!r:.80}")
        State(
            key=state.key,
            tickets=state.tickets,
            rounds=state.rounds,
            outstanding=state.outstanding,
            identity=state.identity,
        ).check()
        rounds, count = [member.rounds for member in state.members], state.shares.members
        seats = self._seats_of(state)
        if not len(rounds) == count == len(seats):
            raise InputError(
                f"there are {len(seats)} members, but in the state {len(rounds)}, and {count} with "
                "weights"
            )
        if set(rounds) != {state.rounds}:
            raise InputError(f"the members have played {rounds} rounds: expected the same number")
        with self._turn.lock:
            self._turn.check()
            before = self._checkpoint(weights=True)
            try:
                for member, own in zip(seats, state.members, strict=True):
                    member.restore(own)
                if seats is self.members:
                    self._groups = Groups(self.members)
                else:  # after members, which share maps of one state
                    self._seat(seats)
                self.shares.resume(state.shares.state)
                if self._believes is not None:
                    self._believes.resume(state.beliefs)
                if self.guard is not None:
                    numbers = () if state.outstanding is None else state.outstanding
                    self.guard.resume(state.guard, numbers)
                self._alarms = state.alarms.copy()
                self._resume_tickets(state)
            except BaseException:
                self._rollback(before)
                self._groups = Groups(self.members)  # members have mappers of their own by now
                raise
            self._cut_short = False
            self._acceptance.forget()

    def _seats_of(self, state: CommitteeState) -> list[Member]:
        """Return the members that a state is of: those that are left in, all, or some of all."""
        maps = [member.map is not None for member in state.members]
        for seats in (self.members, self._all, self._left_in(state)):
            if [member.map is not None for member in seats] == maps:
                return seats
        return self.members

    def _left_in(self, state: CommitteeState) -> list[Member]:
        """Return the members that were left in by the first rows of a state."""
        for own in state.members:
            if own.map is not None and type(features := own.map[0].get("features")) is int:
                sparse = bool(own.map[0].get("sparse"))
                break
        else:
            first = state.members[0]
            features, sparse = first.features, first.transposed
        if features is None:
            return self._all
        return [m for m in self._all if m.map is None or m.map.suits(features, sparse)]

    def grown(self, *, classes: int | None = None, features: int | None = None) -> Self:
        """Return a committee for more classes or features, which otherwise goes on as this one.

        Members grow as :meth:`OGD.grown <driftline.OGD.grown>` says.
        :class:`~driftline.features.Standardise` divides dense rows by the root of the number of
        features: scores of mapped rows become smaller with new features, by up to the root of the
        ratio of old to new.

        >>> import driftline as dl
        >>> stream = dl.streams.DigitTriples(rounds=300, flips=0, seed=0)
        >>> committee = dl.auto(stream.task)
        >>> _ = committee.run(stream)
        >>> longer = committee.grown(features=70)
        >>> longer.step([0.0] * 70, 1).target_loss <= 1.0
        True
        """
        with self._turn.lock:
            self._check_whole()
            known = self.features
            longer = features if known is not None else None
            if features is not None:
                check_longer(self.task, known, features)
            return self._going_on([m._grown(classes, longer, known) for m in self.members])

    def _check_copied(self) -> None:
        self._check_whole()

    def _unshare(self) -> None:
        super()._unshare()
        self._groups, self._shielding = self._groups.of(self.members), Shield()
        self._acceptance = copy(self._acceptance)

    def _going_on(self, members: Sequence[Member]) -> Self:
        """Return a committee of other members that goes on as this one."""
        made = type(self)(members, self.combine, **self._promised, _played=True)
        made.shares = self.shares.copy()
        if made.guard is not None and self.guard is not None:
            made.guard.resume(self.guard.saved())
        if made._believes is not None and self._believes is not None:
            made._believes.state = self._believes.state.copy()
        made._alarms = self._alarms.copy()
        made._resume_tickets(self._state(weights=False))
        return made

    # -- facts

    @property
    def combined(self) -> list[Member]:
        """The members that predictions are made of: not those that are there for a guard alone."""
        if self.guard is None:
            return self.members
        pairs = zip(self.members, self.guard.weighed, strict=True)
        return [member for member, weighed in pairs if weighed]

    @property
    def rule(self) -> Combine:
        """The rule by which members' predictions are combined."""
        return self._rule

    @property
    def combine(self) -> str:
        """The name of that rule."""
        return self._rule.name

    @property
    def _believes(self) -> Beliefs | Mixture | None:
        """What has learned from probabilities, if anything has."""
        return self._beliefs if self._mixture is None else self._mixture

    @property
    def weights(self) -> np.ndarray:
        """The members' weights for the next round."""
        with self._turn.lock:
            return self.shares.now

    @property
    def alarms(self) -> np.ndarray:
        """The rounds after which expected losses were seen to have risen; the last thousand.

        See :mod:`driftline.detectors.alarms`. Rounds are counted from 0, since the first one.
        """
        with self._turn.lock:
            return self._alarms.rounds

    @property
    def beliefs(self) -> np.ndarray:
        """How much each member counts in what the committee believes: see :class:`Beliefs`.

        The weights where members' scores are not logarithms of chances, or are calibrated.
        """
        with self._turn.lock:
            return self.shares.now if self._beliefs is None else self._beliefs.now

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self.members[0].rounds

    @property
    def standardiser(self) -> Standardiser | None:
        """What standardises rows for the first members that have such a map; None if none has."""
        return self._standardiser

    @property
    def _standardiser(self) -> Standardiser | None:
        made = (member._standardiser for member in self.members)
        return next((one for one in made if one is not None), None)

    @property
    def _kept_rows(self) -> np.ndarray | None:
        """The last rows that a member keeps as they came, at most 64; None if none does.

        Columns that the member does not read are 0.
        """
        return next((one for m in self.members if (one := m._kept_rows) is not None), None)

    @property
    def _far(self) -> np.ndarray | None:
        """How many cells of each column were far outside for a member that says so, or None."""
        return next((one for m in self.members if (one := m._far) is not None), None)

    @property
    def features(self) -> int | None:
        """How many features inputs have, None before the first."""
        return self.members[0].features

    def _config(self) -> Json:
        """Return members and how they are combined as plain data."""
        return {
            "combine": self.combine,
            "members": [member._config() for member in self.members],
        }

    def _state_bytes(
        self, features: int, *, classes: int | None = None, sparse: bool = False
    ) -> int:
        """Return about how many bytes the arrays of the state have, before they are allocated.

        For rows of this length, and for more classes than there are now if ``classes`` says so.

        >>> import driftline as dl
        >>> learner = dl.auto(dl.tasks.Multiclass(3), effort="fast")
        >>> [round(learner._state_bytes(1000, classes=k) / 1e6, 1) for k in (3, 30, 300)]
        [0.8, 2.3, 17.4]
        """
        task = self.task if classes is None else with_classes(self.task, classes)
        suited = self._suited(features, sparse)
        made = self.shares.state.nbytes + (0 if self.guard is None else self.guard.state.nbytes)
        made = made * len(suited) // len(self.members)
        maps = {member.map.inner for member in suited if member.map is not None}  # shared
        made += sum(part.state_bytes(features, sparse) for part in maps)
        for member in suited:
            width = features if member.map is None else member.map.width(features)
            made += member._own_bytes(width, task)
        return made

    def _bound(self) -> list[str]:
        """Say what is known beforehand, or why nothing is."""
        if self.guard is not None:
            return self.guard.describe() + self._may_change()
        return ["bound  none beforehand: without a budget no guard holds predictions to a theorem"]

    def _may_change(self) -> list[str]:
        """Say that the first row may leave out members of the guard, if it may."""
        assert self.guard is not None
        pairs = zip(self.guard.known, self.members, strict=True)
        maps = [member.map for known, member in pairs if known is not None]
        if self.features is not None or all(m is None or m.suits(WIDE, False) for m in maps):
            return []
        return [
            "       wide rows leave some of these out: then another bound is said after the first"
        ]

    def describe(self) -> str:
        """Say how the committee predicts, who is in it, with which weight, and what is promised."""
        how = self.rule.how if self.guard is None else f"{self.rule.how}, guarded"
        lines = [f"committee of {len(self.members)}, {how}"]
        if any(member.map is not None for member in self.members):
            lines.append("members with features=: their bounds hold for mapped inputs")
        lines += self._bound()
        for member, weight in zip(self.members, self.weights, strict=True):
            alone = "" if member.facts.steps else f": no theorem, {member.facts.no_theorem}"
            lines.append(f"  {weight:6.3f}  {member!r}{alone}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Name the members."""
        return f"Committee({len(self.members)} members, {self.combine!r}, {self.task!r})"

    # -- files

    def _to_saved(self) -> Saved:
        self._check_whole()
        saved = [member.to_saved() for member in self.members]
        state, arrays = self._state(weights=False).to_saved()
        for j, (_, own) in enumerate(saved):
            arrays |= {f"{j}.{name}": array for name, array in own.items()}
        members = [part for part, _ in saved]
        about = {"kind": "Committee", "combine": self.combine, "members": members, "state": state}
        about["same"], arrays = different_arrays(arrays)
        return about | self._promised, arrays

    @property
    def _promised(self) -> Json:
        """What the guard was made with, by name."""
        if self.guard is None:
            return {}
        return {"budget": self.guard.budget, "largest_weight": self.guard.heaviest}

    @classmethod
    def from_saved(cls, about: Json, arrays: dict[str, np.ndarray]) -> Self:
        """Return the committee that :meth:`to_saved` was asked of."""
        members, arrays = [], dict(all_arrays(about["same"], arrays))
        for j, part in enumerate(about["members"]):
            start = f"{j}."
            own = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            members.append(member_from(part, own))
        if not members:
            raise InputError("a committee needs 1 member or more")
        state = CommitteeState.from_saved(about["state"], arrays, len(members))
        promise = {name: about[name] for name in ("budget", "largest_weight") if name in about}
        committee = cls(members, about["combine"], **promise, _played=True)
        committee.restore(state.replaced(members=tuple(member.state for member in members)))
        return committee

    # -- what a shell asks for

    def _copies(self, rows: Rows) -> bool:
        """Say whether weights are copied: where that is cheap, or a member may refuse a row."""
        self._check_whole()
        maps = [member.map for member in self.members if member.map is not None]
        cheap = any(not part.same_entries for part in maps) or all(
            member._copies_cheaply(rows.size) for member in self.members
        )
        return cheap or not self._acceptance.by_members(rows)

    @property
    def _met(self) -> Any:
        return self._acceptance.known

    @_met.setter
    def _met(self, value: Any) -> None:
        self._acceptance.forget()
        if value is not None:
            self._acceptance.known = value

    def _rollback(self, checkpoint: Checkpoint) -> None:
        super()._rollback(checkpoint)
        self._acceptance.forget()

    def _origin(self, keep: bool) -> tuple[CommitteeState, list[State | None]]:
        members = [member._origin(keep) for member in self.members]
        own = [None if m is None else m.replaced(tickets=self._tickets) for m in members]
        return self._state(weights=False), own

    def _filled(self, origin: Any, keep: bool) -> Any:
        state, members = origin
        pairs = zip(self.members, members, strict=True)
        return state, [member._filled(own, keep) for member, own in pairs]

    def _begin_anew(self, seed: int | None) -> None:
        """Draw by a seed, as a new committee does; and so does the member of a guard."""
        self._draws = Draws.from_seed(seed, self._BRANCH)
        if isinstance(self.guard, OneBook):
            self.guard.member._draws = Draws.from_seed(seed)

    def _reseed(self, seed: int) -> None:
        super()._reseed(seed)
        for j, member in enumerate(self._all):
            member._reseed(seed + j)

    def _shield(self) -> Shield:
        return self._shielding

    @property
    def _torn(self) -> bool:
        return self._cut_short or len({member.rounds for member in self.members}) > 1

    def _check_whole(self) -> None:
        """Refuse to go on where an exception has left members after different rounds."""
        if self._torn:
            raise TornError(
                "the members stand after different rounds, since a call was interrupted: load a "
                "saved committee, or make a new one"
            )

    def _weigh(
        self,
        risks: np.ndarray,
        losses: np.ndarray,
        sample_weight: np.ndarray | None = None,
        out: np.ndarray | None = None,
        late: tuple[np.ndarray, np.ndarray] | None = None,
        believed: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the weights before every round; let them, and beliefs, learn from the rounds."""
        return self.shares.update(
            risks,
            self._largest_loss,
            out,
            sample_weight=sample_weight,
            beliefs=self._beliefs,
            surrogate=losses,
            alarms=self._alarms,
            late=late,
            believed=believed,
        )

    def _weigh_one(
        self, played: Played, label: Label, number: int, paid: np.ndarray | None = None
    ) -> tuple[Mixed | np.ndarray, Watched | None]:
        """Do the same for one round, of which there is a column of the record for each member."""
        made, columns = played
        risks, late, kept = columns[ROW["risk"]][np.newaxis], None, self._width
        guard = self.guard
        if paid is not None:
            own = paid[np.newaxis]
            late = np.zeros(1, dtype=np.int64), np.ascontiguousarray(own[:, -kept:])
            risks = risks if np.isnan(own[0, 0]) else own[:, :-kept]
        if (mixture := self._mixture) is not None:
            scores = mixture.room(1)
            scores[0, self.task.dim - mixture.labels :] = columns[len(ROW) :]
            mixture.fill(scores, made)
            alarms = self._alarms
            mixed = mixture.learn(self.shares, scores, risks, label, alarms=alarms, late=late)
            if not isinstance(guard, Guard):
                return mixed, None
            uniforms = self._draws.uniform(number)[:, 0]
            champions = self.rule.champions(mixed.predictions, scores, made[0][np.newaxis])
            return mixed, guard.learn(scores, champions, label, uniforms, late=late)
        weights = self._weigh(risks, columns[ROW["loss"]][np.newaxis], late=late)
        if not isinstance(guard, OneBook):
            return weights, None
        rows = self.rule.predictions(self.task, Made([own[np.newaxis] for own in made], weights))
        own = columns[:, guard.place]
        book = {name: own[row : row + 1] for name, row in ROW.items()}
        book |= {"prediction": made[guard.place][np.newaxis]}
        return weights, guard.learn(rows, book, [label], late=late)

    def _uniforms_of(self, room: Batch, number: int) -> np.ndarray:
        """Return the random number of every round: a half where none is asked for."""
        uniforms = np.full(len(room), 0.5)
        asked = room.columns.get("asked", every(len(room)))
        uniforms[asked] = self._draws.uniforms(number, int(np.count_nonzero(asked)))[:, 0]
        return uniforms

    def _combined(self, room: Batch, labels: CheckedLabels, number: int) -> dict[str, np.ndarray]:
        """Combine what members predicted."""
        if self.guard is not None:
            return self._guarded(room, labels)
        predictions = [own["prediction"] for own in room.members]
        made = Made(predictions, room["weights"], room.columns.get("mixed"))
        rows = self.rule.predictions(self.task, made)
        paid = self.task.many.losses(rows, labels)
        if (counts := room.columns.get("sample_weight")) is not None:
            paid *= counts
        return {"risk": paid, "target_loss": paid, "prediction": rows}

    def _guarded(self, room: Batch, labels: CheckedLabels) -> dict[str, np.ndarray]:
        """Return the columns of what was played under the guard."""
        rows, paid, target = room["played"], room["paid"], room.columns.get("losses")
        target = self.task.many.losses(rows, labels) if target is None else target
        risk, book, averaged = paid[:, 0], paid[:, 1], room.columns.get("theirs")
        averaged = self.task.many.losses(room["mixed"], labels) if averaged is None else averaged
        if (counts := room.columns.get("sample_weight")) is not None:
            target, risk, book, averaged = (own * counts for own in (target, risk, book, averaged))
        given = {"book": book, "account": paid[:, 2], "reserve": paid[:, 3], "acted": paid[:, 4]}
        given["averaged"] = averaged
        return {"risk": risk, "target_loss": target, "prediction": rows} | given

    @property
    def _scored(self) -> int:
        return len(self.members)

    @property
    def _takes_top(self) -> bool:
        return all(member._fixed.takes_top for member in self.combined)

    def _probabilities_in(self, batch: Batch) -> np.ndarray:
        if self._mixture is None:  # of which the vote is the most probable, whoever predicts
            voted = batch.columns.get("voted", batch["prediction"])
            return self._probabilities(*self._scores_of(batch), voted)
        return batch["chances"]

    def _scores_of(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        return np.stack([own["scores"] for own in batch.members]), batch["beliefs"]

    def _believed(self, members: int) -> np.ndarray:
        return self.beliefs[np.newaxis] if members == len(self.members) else np.ones((1, members))

    def _trace(self, batch: Batch, origin: Any, digest: str) -> CommitteeTrace:
        start, states = None, [None] * len(self.members)
        if origin is not None:
            start, states = AuditOrigin(self.combine, origin[0], digest), origin[1]
        members = zip(self.members, batch.members, states, strict=True)
        traces = tuple(member._trace(own, state, "") for member, own, state in members)
        names = ("risk", "target_loss", "weights", "member_risk")
        prediction = self.task.predictions.values(batch["prediction"])
        columns: dict[str, Any] = {name: batch[name] for name in names}
        for name in ("sample_weight", "probabilities", *GUARDED):
            columns[name] = batch.columns.get(name)
        return CommitteeTrace(**columns, prediction=prediction, members=traces, origin=start)


def _expected(means: np.ndarray, targets: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return expected losses: of one round the same bits as of many, unlike a matrix product."""
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are refused afterwards
        return np.asarray((means * targets).sum(axis=-1) + offsets)
