"""Many settings of a learner over the same dense rows, in one compiled pass over these.

Rows are checked and random numbers drawn once for all settings, labels are encoded once, and all
settings play a row before the next one comes (:mod:`driftline.kernels.settings`), over copies of
their states. Totals have the bits of single runs, and learners stay as they were.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from driftline.engines import CompiledEngine
from driftline.engines.compiled import Apart
from driftline.inputs import DenseRows
from driftline.kernels import aligned_zeros
from driftline.kernels import program as at
from driftline.kernels.memory import CACHE_LINE
from driftline.kernels.settings import play_settings, play_settings_single
from driftline.learner import OGD, Learner
from driftline.learner.shell import checked_stream
from driftline.state import Draws
from driftline.typing import CheckedLabels, Inputs, Labels

__all__ = ["MOST", "Totals", "play_shared", "sharing_of"]

#: The most settings of one pass: their weights are to stay in L2.
MOST = 32

#: How many bytes the columns of all settings of one pass may take.
COLUMNS = 1 << 28


#: How many numbers a cache line has.
LINE = CACHE_LINE // 8


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
    return repr(task), parts.intercept, learner.engine.dtype.name, learner.features


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
    width = len(at.TRACE_COLUMNS)
    most = min(MOST, len(own), max(1, COLUMNS // (8 * width * rows.rounds)))
    columns = np.empty((most, width, rows.rounds))
    uniforms = Draws.from_seed(seed, first._BRANCH).uniforms(0, rows.rounds)
    made: list[Totals | None] = []
    for start in range(0, len(own), most):
        states = [_engine(learner).apart(rows) for learner in own[start : start + most]]
        played = _play(states, rows, codes, uniforms, columns, first.task.prediction_width(codes))
        for count, found in zip(played.tolist(), columns, strict=False):
            made.append(_totals(found) if count == rows.rounds else None)
    return made


def _play(
    states: list[Apart],
    rows: DenseRows,
    labels: CheckedLabels,
    uniforms: np.ndarray,
    columns: np.ndarray,
    width: int,
) -> np.ndarray:
    """Play all rows by settings, and write their columns; return how many each has accepted."""
    count, dtype = len(states), states[0].weights.dtype
    programs = [state.program for state in states]
    params = np.zeros((count, max(program.params.size for program in programs)))
    for row, program in zip(params, programs, strict=True):
        row[: program.params.size] = program.params
    vectors = np.zeros((count, max(state.vector.size for state in states)))
    for row, state in zip(vectors, states, strict=True):
        row[: state.vector.size] = state.vector
    buffer = max(program.buffer().size for program in programs)
    scores, features = states[0].weights.shape
    weights = aligned_zeros((count * scores, features), dtype, apart=True)
    weights[:] = np.concatenate([state.weights for state in states])
    stacked = np.lib.stride_tricks.as_strided(
        weights, (count, scores, features), (scores * weights.strides[0], *weights.strides)
    )
    played = np.zeros(count, dtype=np.int64)
    loop = play_settings if dtype == np.float64 else play_settings_single
    loop.compiled(
        np.array([program.code for program in programs]),
        params,
        *rows.arrays(0, rows.rounds, dtype),
        labels,
        uniforms,
        stacked,
        vectors,
        aligned_zeros((count, -(-buffer // LINE) * LINE), np.float64, apart=True),
        columns[:count],
        np.zeros((count, width), dtype=np.int64),
        played,
    )
    return played


def _engine(learner: OGD) -> CompiledEngine:
    engine = learner.engine
    assert isinstance(engine, CompiledEngine)
    return engine


def _totals(columns: np.ndarray) -> Totals:
    sums = [float(columns[row].sum()) for row in (at.TARGET_ROW, at.RISK_ROW, at.LOSS_ROW)]
    return Totals(columns.shape[1], *sums)
