"""One round of all members in one compiled call, where their rows are dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftline.engines import CompiledEngine
from driftline.inputs import DenseRows, Rows, cast, refuse
from driftline.kernels import lay_out, layout_is_known, play_together
from driftline.kernels.philox import draw_next
from driftline.learner import OGD, round_rows
from driftline.state import Draws
from driftline.typing import Label

__all__ = ["FusedStep"]


class _Seat(NamedTuple):
    """A member, and the arrays that its laid-out arguments point to."""

    member: OGD
    engine: CompiledEngine
    stored: np.ndarray
    arguments: tuple[np.ndarray, ...]  # kept alive, since compiled code has only their addresses


class FusedStep:
    """Members whose arguments for the compiled loop are laid out, for round after round.

    Rounds have the same bits as if each member played alone. The layout is valid as long as every
    member has the same weight array, and keeps no account against a comparator.
    """

    def __init__(self, members: Sequence[OGD], row: DenseRows, checked: np.ndarray):
        count, task = len(members), members[0].task
        self._dtype = members[0].engine.dtype
        self._inputs = np.empty((1, row.features), self._dtype)
        self._labels = np.empty((1, checked.size), np.int64)
        self._uniforms = np.full((count, 1, 1), 0.5)
        self._trace = np.empty((round_rows(task), count))
        self._predictions = np.empty((count, 1, task.predictions.size), np.int64)
        #: Members that draw their predictions, their draws, and the words of the keys of these.
        self._drawing = [j for j, own in enumerate(members) if not own.decoder.deterministic]
        self._draws: list[Draws] = []
        self._keys = np.empty((len(self._drawing), 2), np.uint64)
        self._drawn = np.empty((len(self._drawing), 1))
        self._seats, self._detected, words = [], [], []
        for j, member in enumerate(members):
            engine = member.engine
            assert isinstance(engine, CompiledEngine) and engine.stored is not None
            arguments = engine.arguments(
                self._inputs,
                self._labels,
                self._uniforms[j],
                self._trace[:, j : j + 1],
                self._predictions[j],
            )
            words.append(lay_out(arguments))
            seat = _Seat(member, engine, engine.stored, arguments)
            self._seats.append(seat)
            if engine.parts.restart is not None:
                self._detected.append(engine)
        self._words = np.array(words)
        self._loop = row.loop(self._dtype).address

    @classmethod
    def of(cls, members: Sequence[OGD], row: Rows, checked: Label) -> FusedStep | None:
        """Lay out the arguments of compiled members, for rounds like this one.

        None if they cannot play such rounds together.
        """
        if type(row) is not DenseRows or not layout_is_known():
            return None
        first = members[0].engine
        for member in members:
            engine = member.engine
            assert isinstance(engine, CompiledEngine)
            if not engine.linked or engine.replay:
                return None
            if engine.dtype != first.dtype or engine.features != row.features:
                return None
        made = cls(members, row, checked)
        return made if made.ready(row) else None

    def ready(self, row: Rows) -> bool:
        """Return whether the layout is still valid, for this row."""
        if type(row) is not DenseRows or row.features != self._inputs.shape[1]:
            return False
        for member, engine, stored, _ in self._seats:
            if engine.stored is not stored or member._watch is not None:
                return False
            if member.engine is not engine:
                return False
        return True

    def _draw(self, number: int) -> None:
        """Write the random numbers of a round."""
        draws = [self._seats[j].member._draws for j in self._drawing]
        if any(own is not known for own, known in zip(draws, self._draws or draws, strict=True)):
            self._draws = []
        if not self._draws:
            self._draws, words = draws, [divmod(own.key, 2**64) for own in draws]
            self._keys[:] = [(low, high) for high, low in words]
        places = np.arange(len(draws))
        draw_next.compiled(self._keys, places, np.full(len(draws), number), self._drawn)
        self._uniforms[self._drawing, :, 0] = self._drawn

    def play(
        self, row: DenseRows, checked: np.ndarray, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Play one round; return predictions as numbers, and a column of the trace for each."""
        if self._drawing:
            self._draw(number)
        self._inputs[:] = cast(row.array, self._dtype)
        self._labels[:] = checked
        played = play_together.compiled(self._loop, self._words)
        for engine in self._detected:
            engine.settle()
        if played < len(self._seats):
            refuse(row, 0)
        return self._predictions[:, 0], self._trace
