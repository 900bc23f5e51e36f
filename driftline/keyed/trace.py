"""The record of a run of many learners, a row a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftline.certificates import certify
from driftline.comparators import Fixed
from driftline.errors import InputError, NoGuaranteeError
from driftline.keyed.keys import Key, check_key
from driftline.trace import Trace
from driftline.typing import Inputs, Labels

__all__ = ["KeyedCertificate", "KeyedTrace", "KeyTotals"]

#: Columns of a trace, as far as all learners have them.
COLUMNS = ("loss", "risk", "target_loss", "eta", "grad_sq", "sample_weight")


class KeyTotals(NamedTuple):
    """Sums by key, an entry each: rounds, target losses, and what was to be expected of them."""

    keys: list[Key]
    rounds: np.ndarray
    target_loss: np.ndarray
    risk: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """The mean target loss of every key."""
        return self.target_loss / self.rounds

    def report(self, count: int = 5, least: int = 10) -> str:
        """Return the worst keys, the typical ones and the best as a text, by mean target loss.

        Keys with fewer than ``least`` rounds are left out, unless all have fewer.

        >>> losses = np.array([2.0, 9.0, 5.0])
        >>> print(KeyTotals(["a", "b", "c"], np.full(3, 20), losses, losses).report(count=1))
        3 keys, 60 rounds, mean loss 0.267
        worst    b        20 rounds  0.450
        typical  c        20 rounds  0.250
        best     a        20 rounds  0.100
        """
        parts = self.picked(count, least)
        rounds, loss = int(self.rounds.sum()), float(self.target_loss.sum())
        lines = [f"{len(self.keys):,} keys, {rounds:,} rounds, mean loss {loss / rounds:.3f}"]
        names = {i: f"{self.keys[i]!s:.30}" for part in parts.values() for i in part.tolist()}
        wide = max(8, *map(len, names.values()))
        for what, places in parts.items():
            for i in places.tolist():
                mean = self.target_loss[i] / self.rounds[i]
                lines.append(f"{what:8} {names[i]:{wide}} {self.rounds[i]:>2,} rounds  {mean:.3f}")
        return "\n".join(lines)

    def picked(self, count: int = 5, least: int = 10) -> dict[str, np.ndarray]:
        """Return the places of the worst keys, the typical ones and the best, as in a report."""
        order = self.worst_first(least if (self.rounds >= least).any() else 1)
        middle = max(0, len(order) // 2 - count // 2)
        parts = {"worst": order[:count], "typical": order[middle : middle + count]}
        return parts | {"best": order[::-1][:count]}

    def worst_first(self, least: int = 1) -> np.ndarray:
        """Return the places of keys with this many rounds or more, by their mean target loss."""
        places = np.flatnonzero(self.rounds >= least)
        return places[np.argsort(-self.mean[places], kind="stable")]


class KeyedTrace:
    """What happened in every round, in the order of the rows, and whose it was.

    Columns are those of :class:`~driftline.Trace`: ``risk``, ``target_loss``, ``prediction``, and
    of single learners ``loss``, ``eta`` and ``grad_sq``, of committees ``member_risk`` with a
    number for every member, and ``shared_target_loss``, what the committee over all keys has paid,
    where there is one. :meth:`of` is the trace of one key, as its learner alone would have it.
    """

    def __init__(
        self,
        columns: Mapping[str, np.ndarray],
        slots: np.ndarray,
        keys: Mapping[int, Key],
        trace_of: Callable[[int, np.ndarray], Any],
    ):
        self._columns, self._slots, self._trace_of = dict(columns), slots, trace_of
        self._keys = dict(keys)
        self._places = {key: slot for slot, key in self._keys.items()}

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self._slots)

    def __repr__(self) -> str:
        """Name the rounds, the keys and the totals."""
        total = float(np.nansum(self._columns["target_loss"]))
        return f"KeyedTrace({len(self)} rounds of {len(self._keys)} keys, target loss {total:g})"

    def __getattr__(self, name: str) -> np.ndarray:
        """Return a column."""
        columns = self.__dict__.get("_columns", {})
        if name in columns:
            made: np.ndarray = columns[name]
            return made
        raise AttributeError(f"this trace has no column {name!r}: it has {', '.join(columns)}")

    @property
    def keys(self) -> list[Key]:
        """All keys that have a round, in the order in which their learners came."""
        return list(self._keys.values())

    def rows(self, key: Key) -> np.ndarray:
        """Return which rows are those of a key."""
        slot = self._places.get(check_key(key))
        if slot is None:
            raise InputError(f"no round of this run was for the key {key!r:.80}")
        return np.flatnonzero(self._slots == slot)

    def of(self, key: Key) -> Any:
        """Return the trace of one key, for plots and :func:`~driftline.certify`."""
        rows = self.rows(key)
        return self._trace_of(self._places[check_key(key)], rows)

    def totals(self) -> KeyTotals:
        """Return sums by key."""
        slots = np.fromiter(self._keys, dtype=np.int64, count=len(self._keys))
        size = int(slots.max(initial=-1)) + 1
        sums = [
            np.bincount(self._slots, weights=own, minlength=size)[slots]
            for own in (np.ones(len(self)), self._columns["target_loss"], self._columns["risk"])
        ]
        return KeyTotals(self.keys, sums[0].astype(np.int64), sums[1], sums[2])

    def certify(
        self,
        comparators: Any,
        inputs: Inputs,
        labels: Labels,
        *,
        keys: Any = None,
        **options: Any,
    ) -> KeyedCertificate:
        """Return the certificates of keys, and their sum.

        Parameters
        ----------
        comparators
            One for all keys, or a mapping from keys to theirs. Keys without one are compared with
            weights of 0, as all are by None.
        inputs, labels
            The stream that was played.
        keys
            Whose certificates are wanted. Default: all.
        options
            As :func:`~driftline.certify` takes them.
        """
        by_key = comparators if isinstance(comparators, Mapping) else None
        wanted = self.keys if keys is None else [check_key(key) for key in keys]
        made = {}
        for key in wanted:
            rows = self.rows(key)
            own, trace = comparators if by_key is None else by_key.get(key), self.of(key)
            if own is None and isinstance(trace, Trace):
                own = _zero(trace)
            x, y = _taken(inputs, rows), _taken(labels, rows)
            made[key] = certify(trace, own, x, y, **options)
        return KeyedCertificate(made)


class KeyedCertificate:
    """The certificates of keys; totals and bounds of all are sums of theirs.

    The bound of the sum holds since every summand's does: F_T and P_T are sums over keys, and so is
    the constant: many keys with few rounds pay it often.
    """

    def __init__(self, certificates: Mapping[Key, Any]):
        self._certificates = dict(certificates)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._certificates)

    def __iter__(self) -> Iterator[Key]:
        """Iterate over keys."""
        return iter(self._certificates)

    def __getitem__(self, key: Key) -> Any:
        """Return the certificate of one key."""
        return self._certificates[check_key(key)]

    def __repr__(self) -> str:
        """Name the sums."""
        bounds = self.bounds()
        most = bounds.get("exact", bounds.get("book", "no keys"))
        words = most if isinstance(most, str) else f"at most {most:g}"
        return (
            f"KeyedCertificate({len(self)} keys, expected {self.expected:g}, {words}, "
            f"valid {self.valid})"
        )

    @property
    def valid(self) -> bool:
        """Whether all certificates are."""
        return all(own.valid for own in self._certificates.values())

    @property
    def expected(self) -> float:
        """The sum of expected target losses."""
        return float(sum(own.expected for own in self._certificates.values()))

    def bounds(self) -> dict[str, float | str]:
        """Return the sum of every bound over keys, or why a key has none."""
        made: dict[str, float | str] = {}
        for key, own in self._certificates.items():
            for form, value in own.bounds().items():
                total = made.get(form, 0.0)
                if isinstance(total, str):
                    continue
                made[form] = f"key {key!r}: {value}" if isinstance(value, str) else total + value
        return made

    @property
    def exact(self) -> float:
        """The sum of the exact bounds."""
        return self._sum("exact")

    @property
    def worst_case(self) -> float:
        """The sum of the bounds from F_T and P_T alone."""
        return self._sum("worst_case")

    def _sum(self, form: str) -> float:
        value = self.bounds()[form]
        if isinstance(value, str):
            raise NoGuaranteeError(value)
        return value


def _zero(trace: Trace) -> Fixed:
    """Return weights of 0, as many as a learner has."""
    if trace.origin is None or trace.origin.weights is None:
        raise InputError("give a comparator: the trace does not say how many weights there are")
    weights = trace.origin.scaled_weights
    return Fixed(np.zeros_like(weights, dtype=np.float64))


def _taken(given: Any, rows: np.ndarray) -> Any:
    """Return some rows of an array, a CSR matrix or a list."""
    return [given[i] for i in rows.tolist()] if isinstance(given, list) else given[rows]
