"""Many settings of a learner over the same dense rows, in one pass over these.

Rows are checked, labels encoded and random numbers drawn once for all settings. A block of rows is
played by every setting while it is in the cache, by the loop of single runs over a copy of each
state: so totals have the bits of single runs, and learners stay as they were.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from driftline.engines import CompiledEngine
from driftline.inputs import DenseRows, refuse
from driftline.kernels import program as at
from driftline.learner import OGD, Learner
from driftline.learner.shell import checked_stream
from driftline.state import Draws
from driftline.typing import Inputs, Labels

__all__ = ["Totals", "play_shared", "sharing_of"]

#: How many bytes of inputs are played by all settings before the next ones: half of a usual L2.
BLOCK = 1 << 19

#: How many bytes the columns of all settings of one pass may take.
COLUMNS = 1 << 26


class Totals(NamedTuple):
    """What one learner has paid over a stream."""

    rounds: int
    target_loss: float
    risk: float
    surrogate_loss: float


def sharing_of(learner: Learner) -> Hashable:
    """Return what learners must have in common to share passes over rows, None for none that may.

    These are new learners whose rounds are those of the compiled loop over dense rows.
    """
    if not isinstance(learner, OGD) or not isinstance(learner.engine, CompiledEngine):
        return None
    parts, task = learner.parts, learner.task
    plain = learner.mapper is None and parts.restart is None and not parts.loss.inexact
    if not plain or task.layout.ragged or task.layout.extra_columns:
        return None
    if learner.rounds or learner._tickets or learner._watch is not None:
        return None
    return repr(task), learner.engine.dtype.name, learner.features


def play_shared(
    learners: Sequence[Learner], inputs: Inputs, labels: Labels, seed: int
) -> list[Totals | None]:
    """Play a stream by new learners that share passes, and leave them as they are.

    Return the totals of each; None for one that refuses a round: a single run says why.
    """
    own = [learner for learner in learners if isinstance(learner, OGD)]
    first = own[0]
    rows, codes = checked_stream(first.task, inputs, labels)
    if type(rows) is not DenseRows or first.features not in (None, rows.features):
        return [None] * len(own)
    if (bad := rows.first_bad_row(first.engine.dtype)) is not None:
        refuse(rows, bad)
    size = 8 * len(at.TRACE_COLUMNS) * rows.rounds
    most = max(1, COLUMNS // size)
    room = np.empty((min(most, len(own)), len(at.TRACE_COLUMNS), rows.rounds))
    width = first.task.prediction_width(codes)
    predictions = np.empty((rows.rounds, width), dtype=np.int64)
    uniforms = Draws.from_seed(seed, first._BRANCH).uniforms(0, rows.rounds)
    by = max(64, BLOCK // max(1, rows.features * first.engine.dtype.itemsize))
    made: list[Totals | None] = []
    for begin in range(0, len(own), len(room)):
        states = [_engine(learner).apart(rows) for learner in own[begin : begin + len(room)]]
        refused = set[int]()
        for start, stop in _blocks(rows.rounds, by):
            given = codes[start:stop], uniforms[start:stop]
            for place, (state, columns) in enumerate(zip(states, room, strict=False)):
                if place not in refused:
                    out = columns[:, start:stop], predictions[start:stop]
                    if state.play(rows, start, stop, *given, *out) < stop - start:
                        refused.add(place)
        made += [
            None if place in refused else _totals(room[place]) for place, _ in enumerate(states)
        ]
    return made


def _engine(learner: OGD) -> CompiledEngine:
    engine = learner.engine
    assert isinstance(engine, CompiledEngine)
    return engine


def _blocks(rounds: int, by: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + by, rounds)) for start in range(0, rounds, by))


def _totals(columns: np.ndarray) -> Totals:
    sums = [float(columns[row].sum()) for row in (at.TARGET_ROW, at.RISK_ROW, at.LOSS_ROW)]
    return Totals(columns.shape[1], *sums)
