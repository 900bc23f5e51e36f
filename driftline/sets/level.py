r"""The level of sets: all that changes when labels come.

The nonconformity of a label of chance p is :math:`\log((1 - p) / p)`. It is counted in cells of
width 0.1 between -20 and 20, and counts decay by 1/1000 a round; the quantile is the first
cell up to which the wanted share has been counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driftline.committee.pooling import chances_of
from driftline.errors import InputError
from driftline.kernels import LEVEL, helper, kernel
from driftline.learner.late import LateRun
from driftline.parts import from_config
from driftline.state import archive
from driftline.typing import Inputs, Json, Saved

if TYPE_CHECKING:
    from driftline.sets.adaptive import Adaptive

__all__ = ["SetLevel", "of_label"]

#: How many cells there are in a unit, up to which distance from 0, and for how long counts stay.
CELLS, REACH, MEMORY = 10, 20, 1000.0

#: How far the account of misses goes.
ACCOUNT = 19.5

#: The version of the fields.
VERSION = 1


@helper
def left_out(account, coverage):
    """Return the share of labels to be left out, for a number of misses beyond the goal."""
    miss = 1.0 - coverage
    if account >= 0.0:
        part = account / ACCOUNT
        return miss * max(0.0, 1.0 - part * part)
    part = account / (ACCOUNT - miss)
    return miss + (1.0 - miss) * min(1.0, part * part)


@helper
def last_cell(account, coverage, counts, sums):
    """Return up to which cell labels are in a set now; the most probable one always is."""
    share, whole = left_out(account, coverage), 0.0
    if share >= 1.0:
        return -1
    for i in range(counts.size):
        whole += counts[i]
        sums[i] = whole
    if share <= 0.0 or not whole > 0.0:
        return counts.size
    for i in range(counts.size):
        if sums[i] >= (1.0 - share) * whole:
            return i
    return counts.size


@kernel(LEVEL)
def walk(
    cells, tops, ends, codes, events, asked, of_label, inside, coverage, account, counts, sums, made
):  # fmt: skip
    """Write the set of every round that is asked for, and learn from every label that is told.

    The first places of events are those of rounds that were asked for earlier; ``of_label`` and
    ``inside`` have the cell of each place's label, and whether that is in the set. A code that is
    not below the round's end of ``ends`` is that of a label that was not known.
    """
    first, last, known = of_label.size - cells.shape[0], 0, False
    for n in range(events.size):
        place = events[n]
        if not asked[n]:
            miss = 0.0 if inside[place] else 1.0
            account[0] = max(-ACCOUNT, account[0] + miss - (1.0 - coverage))
            for c in range(counts.size):
                counts[c] *= 1.0 - 1.0 / MEMORY
            counts[of_label[place]] += 1.0
            known = False
            continue
        if not known:
            last, known = last_cell(account[0], coverage, counts, sums), True
        i = place - first
        for k in range(ends[i]):
            made[i, k] = cells[i, k] <= last
        made[i, tops[i]] = True
        inside[place] = codes[i] < ends[i] and made[i, codes[i]]


class SetLevel:
    """How many labels sets have now; it moves when a label comes, and only then.

    ``account`` is the number of misses beyond the goal, ``counts`` are those of nonconformities,
    ``rounds`` and ``misses`` how many labels came, and how many were not in their set.
    ``waiting`` has a row for each round whose label is still to come: the chance of the label, and
    whether it is in the set.

    >>> import driftline as dl
    >>> level = dl.sets.Adaptive(coverage=0.9).level()
    >>> level.sets([[0.7, 0.2, 0.1]])
    array([[ True,  True,  True]])
    >>> for _ in range(500):
    ...     level.tell(chance=0.7, inside=True)
    >>> level.sets([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]])
    array([[ True, False, False],
           [False, False,  True]])
    """

    def __init__(self, part: Adaptive):
        self.part = part
        self.account, self.rounds, self.misses = 0.0, 0, 0
        self.counts = np.zeros(2 * REACH * CELLS)
        self.waiting = np.zeros((0, 2))

    def __repr__(self) -> str:
        """Name the goal and the rounds."""
        return f"SetLevel({self.part!r}, {self.rounds} rounds)"

    def sets(self, chances: npt.ArrayLike) -> np.ndarray:
        """Return which labels are in the set of each row, given all labels' chances, a row each."""
        try:
            given = np.asarray(chances, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"expected rows of chances from 0 to 1: {error}") from None
        if given.ndim != 2 or not given.shape[1] or not ((given >= 0.0) & (given <= 1.0)).all():
            raise InputError(f"expected rows of chances from 0 to 1, but got shape {given.shape}")
        return self.play(given, None)

    def tell(self, chance: float, inside: bool) -> None:
        """Learn of a label: the chance that it had, and whether it was in the set."""
        if not 0.0 <= chance <= 1.0:
            raise InputError(f"expected a chance from 0 to 1, but got {chance!r:.80}")
        none, event, flag = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(1, dtype=bool)
        own = _cells(np.array([chance])), np.array([bool(inside)])
        self._walk(np.zeros((0, 1)), none, none, event, flag, *own)

    def play(
        self,
        chances: np.ndarray,
        labels: np.ndarray | None,
        late: LateRun | None = None,
        known: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the sets of some rounds, each before its label came, and learn of the labels.

        ``labels`` are columns of chances; one beyond these is in no set. ``late`` are the events in
        which rounds were predicted and labels came, None where these come at once. ``known`` is how
        many labels were known before each round, None for all: others are in no set.
        """
        rounds, count = chances.shape
        ends = np.full(rounds, count) if known is None else known
        codes = ends if labels is None else labels
        events, before = np.arange(rounds), np.zeros((0, 2))
        asked = np.ones(rounds, dtype=bool)
        if late is not None:
            events, asked, before = late.rounds, late.asked, self.waiting
        elif labels is not None:
            events, asked = np.repeat(events, 2), np.tile([True, False], rounds)
        own = chances[np.arange(rounds), np.minimum(codes, count - 1)]
        of_label = np.r_[before[:, 0], np.where(codes < ends, own, 0.0)]
        inside = np.r_[before[:, 1] > 0.0, np.zeros(rounds, dtype=bool)]
        given = np.minimum(codes, ends), events, asked
        made = self._walk(chances, ends, *given, _cells(of_label), inside)
        if late is not None:
            self.waiting = np.column_stack([of_label, inside])[late.left]
        return made

    def _walk(
        self,
        chances: np.ndarray,
        ends: np.ndarray,
        codes: np.ndarray,
        events: np.ndarray,
        asked: np.ndarray,
        of_label: np.ndarray,
        inside: np.ndarray,
    ) -> np.ndarray:
        """Play events; return the sets of rounds, and note whether labels are in them."""
        made, account = np.zeros(chances.shape, dtype=bool), np.array([self.account])
        rounds = _cells(chances), chances.argmax(axis=1), np.asarray(ends), codes
        given = np.ascontiguousarray(events), np.ascontiguousarray(asked), of_label, inside
        sums = np.empty_like(self.counts)
        walk.compiled(*rounds, *given, self.part.coverage, account, self.counts, sums, made)
        told = events[~asked]
        self.account, self.rounds = float(account[0]), self.rounds + len(told)
        self.misses += int(np.count_nonzero(~inside[told]))
        return made

    def predict_set(self, learner: Any, inputs: Inputs) -> np.ndarray:
        """Return which labels are in the set of each row now, by a learner; nothing changes."""
        return self.sets(chances_of(learner, inputs))

    # -- as a value

    def copy(self) -> SetLevel:
        """Return a level that goes on by itself."""
        return SetLevel.from_saved(*self.to_saved())

    def save(self, path: str | Path) -> Path:
        """Write the level to one file of plain data, for :func:`driftline.load`."""
        return archive.write(path, *self.to_saved())

    def to_saved(self) -> Saved:
        """Return all fields as plain data and arrays."""
        about = {name: getattr(self, name) for name in ("account", "rounds", "misses")}
        about |= {"kind": "SetLevel", "version": VERSION, "part": self.part.config()}
        return about, {"counts": self.counts.copy(), "waiting": self.waiting.copy()}

    @classmethod
    def from_saved(cls, about: Json, arrays: Mapping[str, np.ndarray]) -> SetLevel:
        """Return the level from what :meth:`to_saved` returned, if it is valid."""
        if about.get("kind") != "SetLevel" or about.get("version") != VERSION:
            raise InputError(f"expected a level of sets of version {VERSION}, not {about!r:.80}")
        part = from_config(about["part"])
        if not hasattr(part, "level"):
            raise InputError(f"{part!r:.80} makes no sets")
        made = cls(part)
        made.account = float(about["account"])
        made.rounds, made.misses = int(about["rounds"]), int(about["misses"])
        counts, waiting = arrays["counts"], arrays["waiting"]
        good = counts.shape == made.counts.shape and bool((counts >= 0.0).all())
        good = good and bool(np.isfinite(counts).all()) and math.isfinite(made.account)
        good = good and waiting.ndim == 2 and waiting.shape[1] == 2
        good = good and bool(((waiting >= 0.0) & (waiting <= 1.0)).all())
        if not good or not 0 <= made.misses <= made.rounds:
            raise InputError("this is no level of sets")
        made.counts, made.waiting = counts.astype(np.float64), waiting.astype(np.float64)
        return made


def _cells(chances: np.ndarray) -> np.ndarray:
    """Return the cells of nonconformities."""
    with np.errstate(divide="ignore"):
        far = np.log1p(-chances) - np.log(chances)
    far = np.clip(far, -REACH, REACH - 0.5 / CELLS)
    cells: np.ndarray = ((far + REACH) * CELLS).astype(np.int64)
    return cells


def of_label(chances: np.ndarray, inside: np.ndarray, label: int) -> tuple[float, bool]:
    """Return the chance of a label, and whether it is in a set; a new one has no chance."""
    if label >= len(chances):
        return 0.0, False
    return float(chances[label]), bool(inside[label])
