"""What happened in a committee, one row a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftline.committee.combine import rule_of
from driftline.committee.state import CommitteeState, all_arrays, different_arrays
from driftline.detectors import alarms_of
from driftline.errors import InputError
from driftline.parts import from_config
from driftline.state import archive
from driftline.trace import (
    ASKED,
    CAME,
    Column,
    Trace,
    checked,
    column,
    joined,
    of_rounds,
    read_file,
    with_suffix,
)
from driftline.typing import Inputs, Json, Labels, Saved

__all__ = ["AuditOrigin", "CommitteeTrace"]

COLUMNS = ("risk", "target_loss", "prediction", "weights", "member_risk")
WEIGHT, ARRIVAL = "sample_weight", "arrival"

#: What a guard has done: what the book allows for the label, account and reserves after the round,
#: what was reserved for it, the share of predictions that were refused, and the target loss of what
#: is most probable in the mean of all members' probabilities.
GUARDED = ("book", "account", "reserve", "acted", "averaged")

KINDS = {name: Column(CAME) for name in ("risk", "target_loss")}
KINDS |= {name: Column(ASKED) for name in (WEIGHT, *GUARDED)}
KINDS["weights"], KINDS["member_risk"] = Column(ASKED, ndims=(2,)), Column(CAME, ndims=(2,))
KINDS["prediction"] = Column(ASKED, (np.float64, np.int64), (1, 2))
KINDS[ARRIVAL], KINDS["probabilities"] = Column(ASKED, (np.int64,)), Column(ASKED, ndims=(2,))


class AuditOrigin(NamedTuple):
    """Where an audit starts: how the committee predicts, and its state before the first round.

    ``digest`` is that of the stream.
    """

    combine: str
    state: CommitteeState
    digest: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class CommitteeTrace:
    """The record of a committee's run.

    ``target_loss`` and ``risk`` are the committee's own; for a vote, which is certain, they are the
    same. ``weights`` has a row of the members' weights before every round, ``member_risk`` a
    row of their expected losses; ``members`` are their own traces, with losses, steps and
    gradients. ``origin`` is the committee's state before the run, so that it can be audited. All
    losses are multiplied by the ``sample_weight`` of the round, if there is one. A guarded
    committee has what the ``book`` allows for each label, the ``account`` with reserves after the
    round, what was in ``reserve`` for it, where it ``acted``, 1 if the book predicted, and the
    target loss of ``averaged`` probabilities alone: see :mod:`driftline.committee.guard`. Where
    labels come late, ``arrival`` is the place of each round in the order in which they came, -1 if
    that has not come: see :class:`~driftline.Trace`.
    ``probabilities``, which are not saved, has those of every label before every round, if the run
    was asked for them.
    """

    risk: np.ndarray
    target_loss: np.ndarray
    prediction: np.ndarray
    weights: np.ndarray
    member_risk: np.ndarray
    members: tuple[Trace, ...]
    origin: AuditOrigin | None = None
    sample_weight: np.ndarray | None = None
    arrival: np.ndarray | None = None
    carried: int = 0
    probabilities: np.ndarray | None = None
    book: np.ndarray | None = None
    account: np.ndarray | None = None
    reserve: np.ndarray | None = None
    acted: np.ndarray | None = None
    averaged: np.ndarray | None = None

    #: What is known of the columns.
    kinds: ClassVar[Mapping[str, Column]] = KINDS

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.risk)

    def __repr__(self) -> str:
        """Name the rounds and the totals."""
        return (
            f"CommitteeTrace({len(self)} rounds, {len(self.members)} members, target loss "
            f"{self.target_loss.sum():g}, best member {self.member_risk.sum(axis=0).min():.6g})"
        )

    @property
    def arrived(self) -> np.ndarray:
        """Whether the label of each round has come."""
        return np.ones(len(self), dtype=bool) if self.arrival is None else self.arrival >= 0

    def of_events(self, late: Any) -> CommitteeTrace:
        """Return the trace of a run's events, in which those that are asked for make no step."""
        return replace(self, members=tuple(member.of_events(late) for member in self.members))

    def rounds_of(self, late: Any) -> CommitteeTrace:
        """Return the rounds of a run whose labels came late, from its events."""
        told = late.tell_events[late.carried :]
        members = tuple(member.rounds_of(late) for member in self.members)
        whole = self.own_columns()
        if self.probabilities is not None:
            whole["probabilities"] = self.probabilities
        columns: dict[str, Any] = of_rounds(whole, KINDS, late)
        if self.book is not None:  # a label that comes at once is told with its step
            columns["book"] = np.where(told >= 0, self.book[told], columns["book"])
        carried = members[0].carried if members else 0
        late_rounds = {"arrival": late.arrivals, "carried": carried, "members": members}
        return replace(self, **columns, **late_rounds)

    @property
    def average(self) -> np.ndarray:
        """The weighted average of the members' risks, which drawing a member would pay."""
        return (self.weights * self.member_risk).sum(axis=1)

    @property
    def alarms(self) -> np.ndarray:
        """The rounds after which :attr:`average` was seen to have risen, by a new detector.

        See :mod:`driftline.detectors.alarms`; ``committee.alarms`` are those since its first round.
        """
        largest = self.members[0].largest_loss if self.members else 1.0
        return alarms_of(self.average / largest, self.sample_weight)

    def seen_by(self, member: int, inputs: Inputs, labels: Labels = None) -> Inputs:
        """Return the inputs of the run as a member saw them, after its map.

        Comparators of the member act on these. Labels are for maps that remember them.
        """
        trace = self.members[member]
        if "features" not in trace.config or trace.origin is None or trace.origin.map is None:
            return inputs
        mapper = from_config(trace.config["features"]).mapper()
        mapper.restore(*trace.origin.map)
        return mapper.transform_rows(trace.task.layout.rows(inputs), labels)

    # -- saving

    def save(self, path: str | Path) -> Path:
        """Write the trace to one sealed file of plain data, named ``.npz``; return where it is."""
        return archive.write(with_suffix(path), *self.to_saved())

    def columns(self) -> dict[str, np.ndarray]:
        """Return all columns by name; names of a member's columns begin with its number."""
        columns = self.own_columns()
        for j, member in enumerate(self._plain_members()):
            columns |= {f"{j}.{name}": column for name, column in member.columns().items()}
        return columns

    def own_columns(self) -> dict[str, np.ndarray]:
        """Return the columns of the committee by name, without those of members."""
        columns = {name: getattr(self, name) for name in (*COLUMNS, WEIGHT, ARRIVAL, *GUARDED)}
        return {name: column for name, column in columns.items() if column is not None}

    def _plain_members(self) -> list[Trace]:
        """Return the members' traces without the sample weights, which are the committee's."""
        return [replace(member, sample_weight=None) for member in self.members]

    @classmethod
    def join(cls, traces: Sequence[CommitteeTrace]) -> CommitteeTrace:
        """Return one trace of rounds that follow each other, with the origin of the first."""
        if any(trace.arrival is not None for trace in traces):
            raise InputError("traces of runs whose labels came late cannot be joined")
        own: dict[str, Any] = joined([trace.own_columns() for trace in traces])
        members = zip(*(trace.members for trace in traces), strict=True)
        parts = tuple(map(Trace.join, members))
        return replace(traces[0], **own, members=parts, probabilities=None)

    def to_saved(self) -> Saved:
        """Return everything as plain data and arrays."""
        arrays = self.own_columns()
        saved = [member.to_saved() for member in self._plain_members()]
        for j, (_, columns) in enumerate(saved):
            arrays |= {f"{j}.{name}": array for name, array in columns.items()}
        about: Json = {"kind": "CommitteeTrace", "members": [part for part, _ in saved]}
        if self.arrival is not None:
            about["carried"] = self.carried
        if (origin := self.origin) is not None:
            state, own = origin.state.replaced(members=()).to_saved()
            about |= {"combine": origin.combine, "digest": origin.digest, "state": state}
            arrays |= own
        about["same"], arrays = different_arrays(arrays)
        return about, arrays

    @classmethod
    def from_saved(cls, about: Json, arrays: Mapping[str, np.ndarray]) -> CommitteeTrace:
        """Return the trace from what :meth:`to_saved` returned, if it is valid."""
        arrays = all_arrays(about["same"], arrays)
        rounds = len(column(arrays, "risk", KINDS["risk"], came=slice(0, 0)))
        optional = GUARDED if GUARDED[0] not in arrays else ()
        more = (WEIGHT, ARRIVAL, "probabilities")
        made: dict[str, Any] = checked(arrays, KINDS, rounds, *more, *optional)
        if ARRIVAL in arrays:
            made["carried"] = about["carried"]
        weight = {WEIGHT: arrays[WEIGHT]} if WEIGHT in arrays else {}
        members = []
        for j, part in enumerate(about["members"]):
            start = f"{j}."
            own = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            members.append(Trace.from_saved(part, own | weight))
            if len(members[-1]) != rounds:
                raise InputError(
                    f"columns differ in length: member {j} has {len(members[-1])} rounds, not "
                    f"{rounds}"
                )
        for name in ("weights", "member_risk"):
            if not members or made[name].shape[1] != len(members):
                raise InputError(
                    f"{name!r} has the shape {made[name].shape} for {len(members)} members"
                )
        return cls(**made, members=tuple(members), origin=_origin(about, arrays))

    @classmethod
    def load(cls, path: str | Path) -> CommitteeTrace:
        """Read what :meth:`save` wrote."""
        return read_file(path, "CommitteeTrace", cls.from_saved)


def _origin(about: Json, arrays: Mapping[str, np.ndarray]) -> AuditOrigin | None:
    """Return the committee's state before the run, if it is valid."""
    if "combine" not in about:
        return None
    combine, digest, count = about["combine"], about["digest"], len(about["members"])
    rule_of(combine)
    if not isinstance(digest, str):
        raise InputError(f"the fingerprint of a stream is a text, not {digest!r:.80}")
    state = CommitteeState.from_saved(about["state"], arrays, count)
    return AuditOrigin(combine, state, digest)
