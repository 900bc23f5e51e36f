"""Many settings of a learner over the same dense rows, in one compiled pass over these.

Rows are checked and random numbers drawn once for all settings, which play a row one after the
other before the next one comes (:mod:`driftline.kernels.settings`), over copies of their states.
Totals have the bits of single runs, and learners stay as they were.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from driftline.committee import Committee
from driftline.engines import CompiledEngine
from driftline.engines.compiled import Apart
from driftline.inputs import DenseRows
from driftline.kernels import TRACE_COLUMNS, aligned_zeros
from driftline.kernels.memory import CACHE_LINE
from driftline.kernels.settings import play_settings
from driftline.learner import OGD, Learner
from driftline.learner.shell import checked_stream
from driftline.state import Draws
from driftline.typing import CheckedLabels, Inputs, Labels

__all__ = ["MOST", "Totals", "play_shared", "sharing_of"]

#: The most settings that are played by one call: their weights are to stay in L2.
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

    These are new learners whose rounds are those of the compiled loop over dense rows; committees
    of one such member that draws nothing, too. Those with equal maps see the same mapped rows.
    """
    own = _linear(learner)
    if own is None or not isinstance(own.engine, CompiledEngine):
        return None
    parts, task = own.parts, own.task
    plain = parts.restart is None and not parts.loss.inexact
    if own.mapper is not None:  # all mapped rows are in memory at once
        plain = plain and own._standardiser is not None and own.mapper.features is None
    if not plain or task.layout.ragged or task.layout.extra_columns:
        return None
    if learner.rounds or own._tickets or own._watch is not None:
        return None
    return repr(task), parts.intercept, own.engine.dtype.name, own.features, own.map


def _linear(learner: Learner) -> OGD | None:
    """Return the learner whose rounds these are: itself, or the one member of a committee."""
    if isinstance(learner, Committee) and len(learner.members) == 1:
        (member,), rule = learner.members, learner.rule
        if rule.scored or learner.guard is not None:
            return None
        if isinstance(member, OGD) and member.decoder.deterministic and not learner._tickets:
            return member
        return None
    return learner if isinstance(learner, OGD) else None


def play_shared(
    learners: Sequence[Learner], inputs: Inputs, labels: Labels, seed: int
) -> list[Totals | None]:
    """Play a stream by new learners that share passes, and leave them as they are.

    Return the totals of each; None for one that refuses a round: a single run says why.
    """
    own = [linear for learner in learners if (linear := _linear(learner)) is not None]
    first = own[0]
    rows, codes = checked_stream(first.task, inputs, labels)
    if type(rows) is not DenseRows or first.features not in (None, rows.features):
        return [None] * len(own)
    if first.map is not None:
        rows = DenseRows(first.map.mapper().transform_rows(rows, codes))
    width = first.task.predictions.width(codes)
    uniforms = Draws.from_seed(seed, first._BRANCH).uniforms(0, rows.rounds)
    made: list[Totals | None] = []
    columns = len(TRACE_COLUMNS)
    most = min(MOST, len(own), max(1, COLUMNS // (8 * columns * rows.rounds)))
    room = np.empty((most, columns, rows.rounds))
    for start in range(0, len(own), most):
        states = [_engine(learner).apart(rows) for learner in own[start : start + most]]
        played = _play(states, rows, codes, uniforms, room, width)
        for count, found in zip(played.tolist(), room, strict=False):
            made.append(_totals(found) if count == rows.rounds else None)
    pairs = zip(learners, made, strict=True)
    return [_of_vote(one) if isinstance(learner, Committee) else one for learner, one in pairs]


def _of_vote(totals: Totals | None) -> Totals | None:
    """Return the totals of a committee, which has no surrogate loss, from those of its member."""
    if totals is None:
        return None
    return totals._replace(risk=totals.target_loss, surrogate_loss=math.nan)


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
    play_settings[dtype].compiled(
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
    named = dict(zip(TRACE_COLUMNS, columns, strict=True))
    sums = [float(named[name].sum()) for name in ("target_loss", "risk", "loss")]
    return Totals(columns.shape[1], *sums)
