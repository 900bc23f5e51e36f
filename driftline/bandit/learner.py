"""A learner from feedback that is less than labels: its predictions are drawn."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from driftline.bandit.partial import Partial, Schedule
from driftline.bandit.policy import Policy
from driftline.engines import Asked
from driftline.errors import InputError
from driftline.features import Map
from driftline.inputs import Rows, refuse
from driftline.inputs.taking import take
from driftline.learner import Facts, Member, Ticket
from driftline.members.remembering import REMEMBERED, Remembering
from driftline.state.arena import Field
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Label

__all__ = ["Unseen"]


class Unseen(Remembering, Member):
    """Base of learners that see less than labels: no map of theirs may see these either.

    What differs between them is their :class:`~driftline.bandit.partial.Partial` feedback.
    """

    _learned: ClassVar[tuple[str, ...]] = (*Member._learned, *REMEMBERED)

    feedback: Partial

    def __init__(self, feedback: Partial, features: Map | None, seed: int | None):
        super().__init__(feedback.task, seed, features)
        self.feedback = feedback
        self._classes = feedback.rows
        self._forget_all()
        self._unshare()

    def _unshare(self) -> None:
        super()._unshare()
        #: Columns for single rounds, where all have the same length.
        self._alone: Batch | None = None

    # -- facts

    #: Predictions are drawn; rows that are too long are refused.
    _fixed = Facts(certain=False, takes_top=False)

    @property
    def rounds(self) -> int:
        """How many rounds were learned from: they are counted beside the weights."""
        return 0 if self._width is None else int(self.memory.item(0))

    @property
    def policies(self) -> tuple[Policy, ...]:
        """What is mixed."""
        return self.feedback.policies

    @property
    def shares(self) -> np.ndarray:
        """The weights of policies in the draw."""
        with self._turn.lock:
            count = len(self.policies)
            if self._width is None or not count:
                return np.full(count, 1.0 / max(1, count))
            made: np.ndarray = self.views.shares.copy()
            return made

    def describe(self) -> str:
        """Say what is learned from, and which bound there is."""
        words = self.feedback.describe(self)
        if self.map is None or not self.feedback.carriers:
            return words
        return f"{words}\nfeatures {self.map!r}: bounds hold for mapped inputs"

    # -- the memory

    def _options(self, task: Task) -> dict[str, Any]:
        return self.feedback.options(task)

    def fields(self, width: int) -> tuple[Field, ...]:
        """Return what is learned from the feedback."""
        return self.feedback.fields()

    def check(self, memory: Any, width: int) -> None:
        """Refuse a memory that no rows can lead to."""
        self.feedback.check(memory)

    # -- rounds

    def _class_scores(self, rows: Rows) -> np.ndarray:
        return self.feedback.scores(None if self._width is None else self.views, rows)

    def _room(self, labels: CheckedLabels) -> Batch:
        return self.feedback.room(labels)

    def _audit_room(self, labels: CheckedLabels) -> Batch:
        return self.feedback.room(labels, audit=True)

    def _schedule(self, room: Batch, labels: CheckedLabels, number: int) -> Schedule:
        """Return which rounds are asked for and told, and random numbers of the former."""
        count = len(labels)
        if room.late is None:
            return Schedule.at_once(self._draws.uniforms(number, count))
        late, first = room.late
        asked, uniforms = room["asked"], np.full((count, 1), 0.5)
        uniforms[asked] = self._draws.uniforms(number, int(np.count_nonzero(asked)))
        places, kept = late.kept.rows(first, first + count, self.feedback.kept_size(labels))
        return Schedule(asked, places, kept, uniforms)

    def _play(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        rows.labels = None
        if "sample_weight" in room.columns:
            raise InputError(
                f"rounds that are learned from {self._fixed.feedback} count once each: give no "
                "sample weights"
            )
        super()._play(rows, start, stop, labels, number, room)

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        self._begin(rows)
        events = self._schedule(room, labels, number)
        played = self.feedback.play(self.memory, rows, start, stop, labels, events, room)
        if played < stop - start:
            refuse(rows, start + played)

    def _learn_one(self, row: Rows, label: Label, number: int) -> tuple[np.ndarray, np.ndarray]:
        room = self._alone or self._room([label])
        if not self._layout.ragged:
            self._alone = room
        self._play_alone(row, label, Schedule.at_once(self._draws.uniform(number)), room)
        assert room.table is not None
        return room["prediction"][0], room.table[:, 0]

    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError  # no committee asks for it

    def _learn_ticket(self, row: Rows, label: Label, ticket: Ticket, paid: object) -> None:
        """Learn from what was predicted, by the chances with which it was."""
        self._play_alone(row, label, Schedule.told(self.feedback.kept_of(ticket, label)), None)

    def _play_alone(self, row: Rows, label: Label, events: Schedule, room: Batch | None) -> None:
        """Play one round; the map does not see its label."""

        def play(mapped: Rows) -> None:
            if self._layout.ragged:
                mapped.check_labels([label])
            if self._width is None and mapped.first_bad_row() is not None:
                refuse(mapped, 0)  # before memory is allocated for it
            self._begin(mapped)
            if not self.feedback.play(self.memory, mapped, 0, 1, [label], events, room):
                refuse(mapped, 0)

        self._round(row, None, play)

    def _look(self, rows: Rows, numbers: np.ndarray, whole: bool = True) -> Asked:
        """Look at one round after the other."""
        if rows.rounds > 1 and (bad := rows.first_bad_row()) is not None:
            refuse(rows, bad)
        looked, task = [], self.task
        for t, number in enumerate(numbers.tolist()):
            mapped = self._mapped(take(rows, np.array([t])) if rows.rounds > 1 else rows)
            memory = self.memory if self._width is not None else self.started(mapped.features)
            one = self.feedback.look(memory, mapped, self._draws.uniform(number))
            if one is None:
                refuse(mapped, 0)
            looked.append(one)
        made = [task.predictions.numbers(one.prediction) for one in looked]
        predictions = task.predictions.rows(len(made), max(map(len, made)))
        for row, own in zip(predictions, made, strict=True):
            row[: len(own)] = own
        kept = None if self.mapper is None else mapped if rows.rounds == 1 else self._mapped(rows)
        return Asked(predictions, [one.mean for one in looked], [one.means for one in looked], kept)

    def _look_mapped(self, rows: Rows, numbers: np.ndarray, whole: bool) -> Asked:
        raise NotImplementedError  # no committee asks for it
