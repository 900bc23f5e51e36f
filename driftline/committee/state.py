"""A committee between two rounds, as a value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftline.committee.shares import Shares
from driftline.detectors import AlarmLog
from driftline.errors import InputError
from driftline.state import State
from driftline.typing import Json, Saved

__all__ = ["CommitteeState", "all_arrays", "different_arrays"]

#: The version of the fields.
VERSION = 1


@dataclass(frozen=True, eq=False)
class CommitteeState:
    """All that changes when a committee learns: members, weights, beliefs, guard, tickets.

    The i-th random number is a function of ``key`` and i, and ``tickets`` is the number of the next
    one; members draw theirs by the same number. In the origin of a trace ``members`` is empty:
    their states are in the members' own traces.
    """

    key: int | None
    tickets: int
    rounds: int
    shares: Shares
    members: tuple[State, ...]
    beliefs: np.ndarray | None
    alarms: AlarmLog
    guard: dict[str, np.ndarray] | None = None
    outstanding: np.ndarray | None = None
    identity: str = ""
    late: Saved | None = None

    def replaced(self, **fields: Any) -> CommitteeState:
        """Return the state with some fields changed."""
        return dataclasses.replace(self, **fields)

    def to_saved(self) -> Saved:
        """Return the fields as plain data and arrays."""
        about: Json = {
            "version": VERSION,
            "key": self.key,
            "tickets": self.tickets,
            "rounds": self.rounds,
            "members": [],
        }
        if self.identity:
            about["identity"] = self.identity
        if self.late is not None:
            about["late"] = self.late[0]
        arrays = {"shares": self.shares.state}
        if self.late is not None:
            arrays |= {f"late.{name}": array for name, array in self.late[1].items()}
        if self.beliefs is not None:
            arrays["beliefs"] = self.beliefs
        if self.guard is not None:
            arrays |= self.guard
        if self.outstanding is not None:
            arrays["outstanding"] = self.outstanding
        arrays["alarms"] = self.alarms.to_array()
        for j, member in enumerate(self.members):
            fields, own = member.to_saved()
            about["members"].append(fields)
            arrays |= {f"{j}.{name}": array for name, array in own.items()}
        about["same"], arrays = different_arrays(arrays)
        return about, arrays

    @classmethod
    def from_saved(
        cls, about: Json, arrays: Mapping[str, np.ndarray], members: int
    ) -> CommitteeState:
        """Return the state from what :meth:`to_saved` returned, if it is valid."""
        if about.get("version") != VERSION:
            raise InputError(f"expected a state of version {VERSION}, not {about.get('version')!r}")
        arrays = all_arrays(about["same"], arrays)
        own = (_of(arrays, f"{j}.") for j in range(len(about["members"])))
        states = map(State.from_saved, about["members"], own)
        waiting = {k: a for k, a in arrays.items() if k.startswith(("outstanding", "late."))}
        counts = {k: about[k] for k in (*COUNTS, "identity", "late") if k in about}
        plain = State.from_saved({"version": 1} | counts, waiting)
        return cls(
            plain.key,
            plain.tickets,
            plain.rounds,
            _shares(arrays, members),
            tuple(states),
            arrays.get("beliefs"),
            AlarmLog.from_array(arrays["alarms"], plain.rounds),
            {name: arrays[name] for name in GUARDED} if "guard" in arrays else None,
            plain.outstanding,
            plain.identity,
            plain.late,
        )


def different_arrays(arrays: dict[str, np.ndarray]) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return arrays without what members' maps share, and the names of those that are left out.

    >>> one = np.ones(3)
    >>> made = different_arrays({"0.map.state": one, "1.map.state": one.copy(), "1.weights": one})
    >>> made[0], list(made[1])
    ({'1.map.state': '0.map.state'}, ['0.map.state', '1.weights'])
    """
    known, same = dict[tuple[str, object, object], list[str]](), dict[str, str]()
    for name, array in arrays.items():
        if ".map." in name:
            alike = known.setdefault((name.split(".map.")[1], array.shape, array.dtype), [])
            first = next((one for one in alike if np.array_equal(arrays[one], array)), name)
            if first == name:
                alike.append(name)
            else:
                same[name] = first
    return same, {name: array for name, array in arrays.items() if name not in same}


def all_arrays(
    same: Mapping[str, str], arrays: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
    """Return the arrays that :func:`different_arrays` was given."""
    return {**arrays, **{name: arrays[first] for name, first in same.items() if ".map." in name}}


COUNTS = ("key", "tickets", "rounds")
GUARDED = ("guard", "reserved.numbers", "reserved")


def _of(arrays: Mapping[str, np.ndarray], start: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}


def _shares(arrays: Mapping[str, np.ndarray], members: int) -> Shares:
    shares = Shares(members)
    shares.resume(arrays["shares"])
    return shares
