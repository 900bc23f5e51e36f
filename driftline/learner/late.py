"""Labels that come late in a run: in which order rounds are predicted and learned from.

Round n is predicted at tick n, and its label arrives at tick n plus its delay, after the prediction
of that tick; labels of the same tick arrive in the order of their rounds. So a run is a sequence of
events, each of which is a round that is asked for or told, and learners play events as they play
rounds. Rounds whose label has not come wait for the next run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.inputs.taking import after, from_arrays, take, take_labels, to_arrays, view
from driftline.learner.outstanding import Outstanding
from driftline.tasks import Task
from driftline.typing import CheckedLabels, Saved

__all__ = ["Account", "AskedRounds", "Kept", "LateRun", "ToldRun", "Waiting"]

#: The version of the fields of rounds that wait.
VERSION = 1


class AskedRounds(NamedTuple):
    """The round of every event, and what weights of a committee have paid for each round."""

    rounds: np.ndarray
    paid: np.ndarray


class Kept:
    """What a learner must know of rounds when their labels come, a row of numbers for each.

    A place is used again when its round was told: there are as many as rounds wait at a time.

    Parameters
    ----------
    rounds, asked
        The round of every event, and whether it is asked for or told.
    needed
        Whether each round must be known after the event in which it is asked for.
    before
        The rows of the first rounds, which wait already; None for none.

    >>> kept = Kept(np.array([0, 1, 0, 2]), np.array([True, True, False, True]), np.ones(3, bool))
    >>> places, table = kept.rows(0, 4, width=2)
    >>> places.tolist(), table.shape
    ([0, 1, 0, 0], (2, 2))
    """

    def __init__(
        self,
        rounds: np.ndarray,
        asked: np.ndarray,
        needed: np.ndarray,
        before: np.ndarray | None = None,
    ):
        self._table = np.zeros((0, 0)) if before is None else np.array(before, order="C")
        size, free = len(self._table), list[int]()
        of_round, places = list(range(size)) + [0] * (len(needed) - size), []
        for t, begins, wanted in zip(
            rounds.tolist(), asked.tolist(), needed[rounds].tolist(), strict=True
        ):
            if begins:
                of_round[t] = free.pop() if free else size
                size = max(size, of_round[t] + 1)
            if not (begins and wanted):
                free.append(of_round[t])
            places.append(of_round[t])
        self._size, self._of_round = size, np.array(of_round, dtype=np.int64)
        self._places = np.array(places, dtype=np.int64)

    def rows(self, start: int, stop: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of some events, and the table: of this many numbers or more a row."""
        rows, columns = self._table.shape
        if rows < self._size or columns < width:
            more = (0, self._size - rows), (0, max(0, width - columns))
            self._table = np.ascontiguousarray(np.pad(self._table, more))
        return self._places[start:stop], self._table

    def of(self, rounds: np.ndarray) -> np.ndarray:
        """Return the rows of some rounds, without zeros at the end of all: these are not kept."""
        made = self._table[self._of_round[rounds]]
        used = np.flatnonzero(made.any(axis=0))
        return np.ascontiguousarray(made[:, : used[-1] + 1 if len(used) else 0])


class Account:
    """What members of a committee have paid for rounds when these were asked for.

    Parameters
    ----------
    rounds, asked
        The round of every event, and whether it is asked for or told.
    sample_weight
        Of every round.
    before
        What was paid for the first rounds, which wait already; None for none.
    needed
        Whether the label of each round comes, now or later; None if all do.
    """

    def __init__(
        self,
        rounds: np.ndarray,
        asked: np.ndarray,
        sample_weight: np.ndarray,
        before: np.ndarray | None = None,
        needed: np.ndarray | None = None,
    ):
        self.rounds, self.asked, self._counts = rounds, asked, sample_weight
        self._before = before
        self._needed = np.ones(len(sample_weight), dtype=bool) if needed is None else needed
        self._paid: tuple[np.ndarray, np.ndarray] | None = None

    def settle(
        self, start: int, stop: int, risks: np.ndarray, width: int, rest: int
    ) -> tuple[np.ndarray, np.ndarray, AskedRounds]:
        """Return what members had paid for the rounds of some events, and how these count.

        ``risks`` are what members pay in each event; those of rounds that are asked for are kept
        until the round is told. Events that are asked for count -1, or -2 if no label will come:
        they move no weights. What weights have paid, ``width`` numbers a round, and ``rest`` more
        are written by whoever has them.
        """
        members = risks.shape[1]
        if self._paid is None:
            whole = np.full((len(self._counts), members + width + rest), np.nan)
            if self._before is not None:
                whole[: len(self._before)] = self._before
            self._paid = whole[:, :members].copy(), whole[:, members:].copy()
        paid, by_weights = self._paid
        rounds, asked = self.rounds[start:stop], self.asked[start:stop]
        paid[rounds[asked]] = risks[asked]
        asks = np.where(self._needed[rounds], -1.0, -2.0)
        counts = np.where(asked, asks, self._counts[rounds])
        given = AskedRounds(np.ascontiguousarray(rounds), by_weights)
        return np.ascontiguousarray(paid[rounds]), counts, given

    def of(self, rounds: np.ndarray) -> np.ndarray | None:
        """Return what was paid for some rounds, None if nothing was settled."""
        return None if self._paid is None else np.hstack(self._paid)[rounds]


@dataclass(frozen=True, eq=False)
class Waiting:
    """Rounds that were predicted, and whose labels come at known ticks.

    ``kept`` is what must be known of each when its label comes, None for nothing. For a committee
    that is what its members paid, then what each set of weights would have, and what its weights
    did: see :mod:`driftline.committee.shares`. For a learner that does not see labels it is what
    was predicted, by which probabilities.
    """

    rows: Rows
    labels: CheckedLabels
    numbers: np.ndarray
    due: np.ndarray
    sample_weight: np.ndarray
    kept: np.ndarray | None = None

    def among(self, outstanding: np.ndarray) -> Waiting | None:
        """Return those of the rounds that are still outstanding, None for none."""
        kept = np.flatnonzero(np.isin(self.numbers, outstanding))
        if len(kept) == len(self.numbers):
            return self
        return self.taken(kept) if len(kept) else None

    def to_saved(self) -> Saved:
        """Return all as plain data and arrays, which are not copied."""
        about, arrays = to_arrays(self.rows)
        labels = self.labels
        if isinstance(labels, list) and np.ndim(labels[0]):
            arrays["sizes"] = np.array([len(label) for label in labels], dtype=np.int64)
            labels = np.concatenate(labels)
        arrays |= {"labels": np.asarray(labels), "numbers": self.numbers}
        arrays |= {"due": self.due, "sample_weight": self.sample_weight}
        if self.kept is not None:
            arrays["kept"] = self.kept
        return {"version": VERSION, **about}, arrays

    @classmethod
    def from_saved(cls, task: Task, saved: Saved, outstanding: np.ndarray | None) -> Waiting:
        """Return the rounds from what :meth:`to_saved` returned, if they can be of this task.

        ``outstanding`` are the numbers of all rounds that may wait.
        """
        about, arrays = saved
        if not isinstance(about, Mapping) or about.get("version") != VERSION:
            raise InputError(f"expected waiting rounds of version {VERSION}, not {about!r:.80}")
        try:
            rows = from_arrays(task.layout, about, arrays)
            labels: CheckedLabels = arrays["labels"]
            if "sizes" in arrays:
                labels = np.split(labels, np.cumsum(arrays["sizes"])[:-1])
            made = cls(
                rows,
                labels,
                arrays["numbers"],
                arrays["due"],
                arrays["sample_weight"],
                arrays.get("kept"),
            )
            return made._checked(task, outstanding)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"these are no rounds that wait for labels: {error}") from error

    def _checked(self, task: Task, outstanding: np.ndarray | None) -> Waiting:
        """Refuse what no run can have left: the rounds may come from anywhere."""
        count, known = (
            self.rows.rounds,
            task.labels.check_all([task.labels.value(y) for y in self.labels]),
        )
        pairs = zip(known, self.labels, strict=True)
        if len(known) != count or not all(np.array_equal(*pair) for pair in pairs):
            raise InputError(f"{count} rounds cannot have these labels")
        self.rows.check_labels(known)
        for name, kind in (("numbers", np.int64), ("due", np.int64), ("sample_weight", np.float64)):
            column = getattr(self, name)
            if column.shape != (count,) or column.dtype != kind or not (column >= 0).all():
                raise InputError(f"{count} rounds cannot have {column!r:.60} as {name}")
        if not np.isfinite(self.sample_weight).all() or (self.due < self.numbers).any():
            raise InputError("a label cannot come before its round, or count without end")
        if outstanding is None or not np.isin(self.numbers, outstanding).all():
            raise InputError("rounds wait that are not outstanding")
        kept = self.kept
        if kept is not None and not (
            kept.ndim == 2 and kept.dtype == np.float64 and len(kept) == count
        ):
            raise InputError(f"{count} rounds cannot have {kept!r:.60} kept of them")
        if kept is not None and not np.isfinite(kept).all():
            raise InputError("what is kept of rounds must be finite")
        if self.rows.first_bad_row() is not None:
            raise InputError("inputs must be finite")
        return replace(self, labels=known)

    def taken(self, index: np.ndarray) -> Waiting:
        """Return some of the rounds."""
        return Waiting(
            take(self.rows, index),
            take_labels(self.labels, index),
            self.numbers[index],
            self.due[index],
            self.sample_weight[index],
            None if self.kept is None else self.kept[index],
        )


class LateRun:
    """The events of a run, over rounds that waited before it and its own.

    Parameters
    ----------
    first
        The number of its first round.
    rows, labels, sample_weight
        Its rounds.
    delays
        After how many rounds each label comes, negative for never.
    waiting
        Rounds of earlier runs, None if there are none.
    """

    def __init__(
        self,
        first: int,
        rows: Rows,
        labels: CheckedLabels,
        sample_weight: np.ndarray | None,
        delays: np.ndarray,
        waiting: Waiting | None,
    ):
        count, self.first = rows.rounds, first
        self.carried = 0 if waiting is None else len(waiting.numbers)
        self.weighted = sample_weight is not None
        numbers = first + np.arange(count)
        due = np.where(delays < 0, -1, numbers + np.maximum(delays, 0))
        weights = np.ones(count) if sample_weight is None else sample_weight
        #: What is kept of rounds that waited; and of all by a learner that is no committee.
        self._before: np.ndarray | None = None
        self._kept: Kept | None = None
        if waiting is not None:
            rows, numbers = after(waiting.rows, rows), np.r_[waiting.numbers, numbers]
            due = np.r_[np.maximum(waiting.due, first), due]  # time may have gone on without us
            weights = np.r_[waiting.sample_weight, weights]
            known = waiting.labels
            joined = (
                [*known, *labels] if isinstance(known, list) else np.concatenate([known, labels])
            )
            labels, self._before = joined, waiting.kept
            self.weighted = self.weighted or bool((waiting.sample_weight != 1.0).any())
        self.rows, self.labels, self.numbers, self.due = rows, labels, numbers, due
        self.sample_weight = weights
        told = np.flatnonzero((due >= first) & (due < first + count))
        ticks = due[told] - first
        if (ticks[1:] < ticks[:-1]).any():
            order = np.argsort(ticks, kind="stable")
            told, ticks = told[order], ticks[order]
        places = np.arange(len(told))
        tells = ticks + 1 + places  # after what is asked for up to the tick, and told before it
        #: Of every round, the event in which it is told, -1 for none; and of own rounds, the place
        #: in the order in which labels arrive.
        self.tell_events, arrivals = np.full((2, len(numbers)), -1)
        self.tell_events[told], arrivals[told] = tells, places
        self.arrivals = arrivals[self.carried :]
        #: Of every event, the place of its round, and whether it is asked for or told.
        self.asked = np.ones(count + len(told), dtype=bool)
        self.asked[tells] = False
        #: Of every round of this run, the event in which it is asked for.
        self.ask_events = np.flatnonzero(self.asked)
        self.rounds = np.empty(len(self.asked), dtype=np.int64)
        self.rounds[self.ask_events] = np.arange(self.carried, len(numbers))
        self.rounds[tells] = told
        needed = (self.tell_events >= 0) | (due >= 0)
        self._account = Account(self.rounds, self.asked, weights, self._before, needed)

    @property
    def events(self) -> tuple[Rows, CheckedLabels, np.ndarray | None]:
        """Rows, labels and sample weights of all events."""
        rows, labels = view(self.rows, self.rounds), take_labels(self.labels, self.rounds)
        rows.asked = self.asked
        return rows, labels, self.sample_weight[self.rounds] if self.weighted else None

    def asks(self, start: int, stop: int) -> int:
        """Return how many of some events are rounds that are asked for."""
        return int(np.count_nonzero(self.asked[start:stop]))

    def settle(
        self, start: int, stop: int, risks: np.ndarray, width: int, rest: int
    ) -> tuple[np.ndarray, np.ndarray, AskedRounds]:
        """Return what members had paid for the rounds of some events: see :class:`Account`."""
        return self._account.settle(start, stop, risks, width, rest)

    @property
    def kept(self) -> Kept:
        """What is kept of rounds until their labels come, by a learner that does not see these."""
        if self._kept is None:
            needed = (self.tell_events >= 0) | (self.due >= 0)
            self._kept = Kept(self.rounds, self.asked, needed, self._before)
        return self._kept

    @property
    def waiting(self) -> Waiting | None:
        """The rounds whose labels are still to come."""
        left = self.left
        if not len(left):
            return None
        given = (self.rows, self.labels, self.numbers, self.due, self.sample_weight)
        made = Waiting(*given).taken(left)
        if (paid := self._account.of(left)) is not None:
            return replace(made, kept=paid)
        return made if self._kept is None else replace(made, kept=self._kept.of(left))

    def tickets_left(
        self, outstanding: Outstanding, waiting: Waiting | None
    ) -> tuple[Outstanding, Waiting | None]:
        """Return which tickets are outstanding after the run, and which rounds wait."""
        numbers = np.r_[outstanding.to_array(), self.numbers[self.carried :]]
        left = numbers[~np.isin(numbers, self.told, assume_unique=True)]
        return Outstanding(np.sort(left)), self.waiting

    @property
    def left(self) -> np.ndarray:
        """The places of the rounds whose labels are still to come."""
        return np.flatnonzero((self.tell_events < 0) & (self.due >= 0))

    @property
    def told(self) -> np.ndarray:
        """The numbers of the rounds that were told."""
        return np.sort(self.numbers[self.tell_events >= 0], kind="stable")  # fast if sorted


class ToldRun:
    """Rounds that are all told, and were asked for by tickets.

    Parameters
    ----------
    first
        The number of the next ticket.
    numbers
        Those of the tickets.
    paid
        What members and weights paid for each when it was asked for; None where nobody asks for it.
    now
        Which of them were asked for in the very state in which they are told: members pay what they
        pay now.
    """

    #: No round is asked for.
    asked = None

    def __init__(self, first: int, numbers: np.ndarray, paid: np.ndarray | None, now: np.ndarray):
        self.first, self._numbers, self._paid, self._now = first, numbers, paid, now

    def asks(self, start: int, stop: int) -> int:
        """Return 0."""
        return 0

    def settle(
        self, start: int, stop: int, risks: np.ndarray, width: int, rest: int
    ) -> tuple[np.ndarray, None, AskedRounds]:
        """Return what :meth:`LateRun.settle` does; all rounds count once."""
        assert self._paid is not None
        own, now = self._paid[start:stop], self._now[start:stop, np.newaxis]
        first = risks.shape[1]
        members = np.where(now, risks, own[:, :first])
        weights = np.where(now, np.nan, own[:, first : first + width])
        weights = np.hstack([weights, own[:, first + width :]]) if rest else weights
        return members, None, AskedRounds(np.arange(stop - start, dtype=np.int64), weights)

    def tickets_left(
        self, outstanding: Outstanding, waiting: Waiting | None
    ) -> tuple[Outstanding, Waiting | None]:
        """Return which tickets are outstanding after the run, and which rounds wait."""
        left = outstanding.without(self._numbers)
        return left, None if waiting is None else waiting.among(left.to_array())
