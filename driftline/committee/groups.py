"""The members of a committee, grouped by feature map: rows are mapped once for each group."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from driftline.committee.fused import FusedStep
from driftline.errors import InputError
from driftline.features import Map, Mapper
from driftline.inputs import DenseRows, Rows, SparseRows, refuse, rows_of
from driftline.learner import Asked, Member, round_rows
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Inputs, Label

__all__ = ["Group", "Groups"]

#: What members predicted in one round, as numbers, and a column of the trace for each.
Played = tuple[Sequence[np.ndarray] | np.ndarray, np.ndarray]


class Group:
    """Members that see the same rows: they share one map, or have none."""

    def __init__(self, place: int, member: Member):
        self.map: Map | None = None if member.map is None else member.map.inner
        self.mapper: Mapper | None = member.mapper
        self.places, self.members = [place], [member]
        self.fused: FusedStep | None = None  # until there are weights

    def join(self, place: int, member: Member) -> None:
        """Let a member share the map; it must have learned the same."""
        shared = member.mapper is self.mapper
        if not shared and self.mapper is not None and member.mapper is not None:
            (about, arrays), (more, others) = self.mapper.to_saved(), member.mapper.to_saved()
            if about != more or any(not np.array_equal(a, others[k]) for k, a in arrays.items()):
                raise InputError(f"two members have seen different rows with the map {self.map!r}")
            if member.map != self.members[0].map:  # limits were for the first rows
                self.mapper = self.mapper.bare
                for own in self.members:
                    own.mapper = self.mapper
            member.mapper = self.mapper
        self.places.append(place)
        self.members.append(member)

    def choose_fused(self) -> None:
        """Choose the members that play in one compiled call; the others play alone."""
        pairs = list(zip(self.places, self.members, strict=True))
        self.together = [place for place, member in pairs if member._fixed.fuses]
        self.alone = [(place, member) for place, member in pairs if not member._fixed.fuses]
        self.fusing: list[Any] = [member for member in self.members if member._fixed.fuses]
        ends = (self.together[0], self.together[-1] + 1) if self.together else (0, 0)
        #: The places of the members that play together: a slice if these are adjacent.
        self.seats = slice(*ends) if ends[1] - ends[0] == len(self.together) else None

    def of(self, members: Sequence[Member]) -> Group:
        """Return the same group of other members, which are copies of all."""
        made = copy(self)
        made.members = [members[place] for place in self.places]
        made.mapper, made.fused = made.members[0].mapper, None
        made.alone = [(place, members[place]) for place, _ in self.alone]
        made.fusing = [members[place] for place in self.together]
        return made

    def seen(self, rows: Rows, start: int, stop: int) -> tuple[Rows, int]:
        """Return rows as the members see them, and where they begin; the map learns from them."""
        if self.mapper is not None:
            return self.mapper.piece(rows, start, stop), 0
        return rows, start

    def look_at(self, rows: Rows) -> Rows:
        """Return rows as the members would see each of them next; nothing is learned."""
        return rows if self.mapper is None else self.mapper.look_at(rows)

    def play_one(
        self, row: Rows, checked: Label, number: int, made: list[Any], columns: np.ndarray
    ) -> None:
        """Let all members play one round, and write the results at their places."""
        alone = self.alone
        if self.together:
            fused = self.fused
            if fused is None or not fused.ready(row):
                fused = self.fused = FusedStep.of(self.fusing, row, checked)
            if fused is None:
                alone = list(zip(self.places, self.members, strict=True))
            else:
                predictions, theirs = fused.play(row, checked, number)  # type: ignore[arg-type]
                if self.seats is not None:
                    columns[:, self.seats], made[self.seats] = theirs, predictions
                else:
                    columns[:, self.together] = theirs
                    for j, prediction in zip(self.together, predictions, strict=True):
                        made[j] = prediction
        for j, member in alone:
            prediction, column = member._learn_one_mapped(row, checked, number)
            made[j], columns[: len(column), j] = prediction.copy(), column[: len(columns)]

    def score_rows(self, inputs: Inputs) -> list[np.ndarray]:
        """Return the members' scores of many inputs, mapped in blocks, since they may be wide."""
        first = self.members[0]
        if first.task.layout.ragged:
            return [first.score_rows(inputs)]  # which refuses it
        rows = inputs if isinstance(inputs, (DenseRows, SparseRows)) else rows_of(inputs)
        first._check_features(rows)
        size = first._batch_size(rows) if self.mapper is not None else max(1, rows.rounds)
        parts = []
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, max(1, rows.rounds), size):
                mapped = first._mapped(rows, start, min(start + size, rows.rounds))
                parts.append([member._score_mapped(mapped) for member in self.members])
        pairs = zip(*parts, strict=True)
        made = parts[0] if len(parts) == 1 else [np.concatenate(own) for own in pairs]
        finite = all(np.isfinite(own).all() for own in made)
        if not finite and (bad := rows.first_bad_row()) is not None:
            refuse(rows, bad)
        return made


class Groups:
    """All members of a committee, group by group."""

    def __init__(self, members: Sequence[Member]):
        self.count, self._rows = len(members), round_rows(members[0].task)
        self.groups: list[Group] = []
        for j, member in enumerate(members):
            inner = None if member.map is None else member.map.inner
            known = next((group for group in self.groups if group.map == inner), None)
            if known is None:
                self.groups.append(Group(j, member))
            else:
                known.join(j, member)
        for group in self.groups:
            group.choose_fused()
        self._single = self.groups[0] if len(self.groups) == 1 else None

    def of(self, members: Sequence[Member]) -> Groups:
        """Return the groups of other members, which are copies of these."""
        made = copy(self)
        made.groups = [group.of(members) for group in self.groups]
        made._single = made.groups[0] if len(made.groups) == 1 else None
        return made

    def play_one(self, row: Rows, checked: Label, number: int) -> Played:
        """Let all members play one round."""
        if (group := self._single) is not None:
            row, _ = group.seen(row, 0, 1)
            fused = group.fused
            if fused is not None and not group.alone and fused.ready(row):
                return fused.play(row, checked, number)  # type: ignore[arg-type]
            seen = [row]
        else:
            seen = [group.seen(row, 0, 1)[0] for group in self.groups]
        made: list[Any] = [None] * self.count
        columns = np.empty((self._rows, self.count))
        for group, own in zip(self.groups, seen, strict=True):
            group.play_one(own, checked, number, made, columns)
        return made, columns

    def play(
        self,
        rows: Rows,
        start: int,
        stop: int,
        labels: CheckedLabels,
        number: int,
        room: Batch,
    ) -> None:
        """Let all members play some rows, which stay in the cache from one member to the next."""
        for group in self.groups:
            seen, at = group.seen(rows, start, stop)
            if seen is not rows:
                seen.before = start
            for j, member in zip(group.places, group.members, strict=True):
                own = room.members[j]
                member._play_mapped(seen, at, at + stop - start, labels, number, own)

    def score_rows(self, inputs: Inputs) -> list[np.ndarray]:
        """Return the members' scores of many inputs; these are mapped once for a whole group."""
        made: list[Any] = [None] * self.count
        for group in self.groups:
            for j, scores in zip(group.places, group.score_rows(inputs), strict=True):
                made[j] = scores
        return made

    def look_at(
        self, rows: Rows, suited: Sequence[Member], numbers: np.ndarray, whole: bool
    ) -> list[Asked]:
        """Return what the members predict whose maps suit the rows; nothing is learned."""
        known = dict[int, Asked]()
        for group in self.groups:
            pairs = zip(group.places, group.members, strict=True)
            able = [(j, member) for j, member in pairs if member in suited]
            if able:
                seen = group.look_at(rows)
                for j, member in able:
                    known[j] = member._look_mapped(seen, numbers, whole)
        return [known[j] for j in sorted(known)]
