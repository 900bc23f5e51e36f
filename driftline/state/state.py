"""The state of a learner between two rounds: named fields, which files have by the same names."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.state.arena import inside, within
from driftline.typing import Saved

__all__ = ["State", "check_outstanding"]

#: The version of the fields.
VERSION = 1

_NOTHING = np.zeros(0)
_NOTHING.setflags(write=False)


@dataclass(frozen=True, eq=False)
class State:
    """All that changes when a learner learns.

    Weights are ``scale`` times an array, a row per score, or per feature where it is
    ``transposed``; None before the first input. ``norm_sq`` is their squared norm, which is
    computed anew at round ``refresh``. The i-th random number is a function of ``key`` and i, and
    ``tickets`` is the number of the next one; the state of an engine has no key. ``inner`` is the
    inner product with a comparator's weights, if there is one. ``most_eta`` is the largest step
    that rounds of large sample weights allow, 0 if there were none.

    ``map`` is the state of the feature map, as plain data and arrays; None without a map.

    ``outstanding`` are the numbers of tickets that were asked for and not told yet, None for none;
    ``identity`` is the id of the learner, "" before its first ticket. ``late`` are rounds of a run
    whose labels are still to come, as plain data and arrays; None for none.

    ``memory`` is the memory of a learner without weights, such as counts; None for all others.

    ``model`` is a model of another library, None where there is none. It is never changed: learners
    go on from copies. What can say itself as plain data and arrays does, and is that after loading;
    all else is kept in memory, and files have its name (:func:`driftline.state.archive.named`).

    Rate and detector have memories of their own.
    """

    key: int | None = None
    tickets: int = 0
    rounds: int = 0
    features: int | None = None
    transposed: bool = False
    scale: float = 1.0
    norm_sq: float = 0.0
    refresh: int = 0
    largest_input_sq: float = 0.0
    eta: float = 0.0
    inner: float = 0.0
    most_eta: float = 0.0
    restarted: bool = False
    weights: np.ndarray | None = None
    rate_memory: np.ndarray = field(default_factory=lambda: _NOTHING)
    detector_memory: np.ndarray = field(default_factory=lambda: _NOTHING)
    map: Saved | None = None
    memory: np.ndarray | None = None
    outstanding: np.ndarray | None = None
    identity: str = ""
    late: Saved | None = None
    model: Any = None

    @property
    def scaled_weights(self) -> np.ndarray | None:
        """The weights themselves, one row per score."""
        if self.weights is None:
            return None
        rows = self.weights.T if self.transposed else self.weights
        return rows if self.scale == 1.0 else (rows * self.scale).astype(rows.dtype, copy=False)

    def replaced(self, **fields: Any) -> State:
        """Return the state with some fields changed."""
        return dataclasses.replace(self, **fields)

    def with_scores(self, place: int, more: int) -> State:
        """Return a state with weights of 0 inserted, for more scores."""
        if self.weights is None or more == 0:
            return self
        axis = 1 if self.transposed else 0
        return self.replaced(weights=np.insert(self.weights, [place] * more, 0.0, axis=axis))

    def with_columns(self, places: np.ndarray) -> State:
        """Return a state whose feature i was feature ``places[i]`` before, or is new if that is -1.

        New features have weights of 0. An intercept stays after all features.
        """
        if self.weights is None or self.features is None:
            return self
        axis = 0 if self.transposed else 1
        taken = np.r_[places, np.arange(self.features, self.weights.shape[axis])]
        weights = np.take(self.weights, np.maximum(taken, 0), axis=axis)
        weights[(taken < 0,) if axis == 0 else (slice(None), taken < 0)] = 0.0
        return self.replaced(weights=weights, features=len(places))

    # -- files

    def to_saved(self) -> Saved:
        """Return the fields as plain data and arrays."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        arrays = {name: fields.pop(name) for name in ARRAYS}
        if hasattr(self.model, "to_saved"):
            fields["model"] = self.model.to_saved()
        if isinstance(fields["model"], tuple):
            fields["model"], own = fields["model"]
            arrays |= within("model", own)
        for name, nothing in (("model", None), ("identity", "")):
            if fields[name] is nothing or fields[name] == nothing:
                del fields[name]
        for name in SAVED:
            about, own = fields.pop(name) or (None, {})
            if about is not None:
                fields[name] = about
            arrays |= within(name, own)
        return {"version": VERSION, **fields}, {k: a for k, a in arrays.items() if a is not None}

    @classmethod
    def from_saved(cls, about: object, arrays: Mapping[str, np.ndarray]) -> State:
        """Return the state from what :meth:`to_saved` returned, if its fields are valid.

        Fields that the file does not have keep their defaults. Whether the state fits a learner's
        parts is checked by the learner.
        """
        if not isinstance(about, Mapping) or about.get("version") != VERSION:
            raise InputError(f"expected a state of version {VERSION}, but got {about!r:.100}")
        made = {name: value for name, value in about.items() if name != "version"}
        if unknown := set(made) - set(CHECKS):
            raise InputError(f"a state has no field {min(unknown)!r}")
        made |= {name: arrays[name] for name in ARRAYS if name in arrays}
        for name in (*SAVED, "model"):
            if isinstance(made.get(name), Mapping) or (name in made and name in SAVED):
                made[name] = (made[name], inside(name, arrays))
        state = cls(**made)
        state.check()
        return state

    def check(self) -> None:
        """Refuse fields that no learner can have: the state may come from anywhere."""
        for name, good in CHECKS.items():
            value = getattr(self, name)
            if name in SAVED and value is not None:
                value = value[0]
            if not good(value):
                raise InputError(f"the state has {value!r:.100} as {name!r}")
        for name in ("rate_memory", "detector_memory"):
            memory = getattr(self, name)
            good_kind = isinstance(memory, np.ndarray) and memory.dtype == np.float64
            if not good_kind or memory.ndim != 1:
                raise InputError(f"{name!r} must be a vector of numbers, not {memory!r:.100}")
        memory = self.memory
        if memory is not None and (
            not isinstance(memory, np.ndarray) or memory.ndim != 1 or memory.dtype != np.float64
        ):
            raise InputError(f"'memory' must be a vector of numbers, not {memory!r:.100}")
        if self.outstanding is not None:
            check_outstanding(self.outstanding, self.tickets)
        weights = self.weights
        if weights is not None and (
            not isinstance(weights, np.ndarray) or weights.ndim != 2 or weights.dtype.kind != "f"
        ):
            raise InputError(f"weights must be a table of numbers, not {weights!r:.100}")


def check_outstanding(numbers: Any, tickets: int) -> None:
    """Refuse what cannot be the numbers of outstanding tickets."""
    good = isinstance(numbers, np.ndarray) and numbers.ndim == 1 and numbers.dtype == np.int64
    if good and len(numbers):
        good = numbers[0] >= 0 and numbers[-1] < tickets and bool((np.diff(numbers) > 0).all())
    if not good:
        raise InputError(f"these are no outstanding tickets of {tickets}: {numbers!r:.80}")


ARRAYS = ("weights", "rate_memory", "detector_memory", "memory", "outstanding")

#: Fields that are plain data and arrays, which have the name of the field before theirs.
SAVED = ("map", "late")


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _positive(value: Any) -> bool:
    return _number(value) and value >= 0.0


CHECKS = {
    "key": lambda value: value is None or (type(value) is int and 0 <= value < 2**128),
    "tickets": _count,
    "rounds": _count,
    "features": lambda value: value is None or _count(value),
    "transposed": lambda value: type(value) is bool,
    "scale": lambda value: _number(value) and value > 0.0,
    "norm_sq": _positive,
    "refresh": _count,
    "largest_input_sq": _positive,
    "eta": _positive,
    "inner": _number,
    "most_eta": _positive,
    "identity": lambda value: isinstance(value, str) and len(value) <= 64,
    "restarted": lambda value: type(value) is bool,
    "map": lambda value: value is None or isinstance(value, Mapping),
    "late": lambda value: value is None or isinstance(value, Mapping),
    "model": lambda value: (
        value is None or isinstance(value, tuple) or callable(getattr(value, "learn_one", None))
    ),
}
