"""All rounds in one compiled loop."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from driftline.engines.base import Asked, Block, Engine, refresh_after
from driftline.inputs import DenseRows, Groups, Rows, cast, refuse
from driftline.kernels import Kernel, Program, aligned_zeros
from driftline.kernels import program as at
from driftline.typing import CheckedLabels

__all__ = ["Apart", "CompiledEngine"]


NOBODY = np.empty((0, 0))


class Linked(NamedTuple):
    """The program of the parts for rounds of up to ``size`` scores, and its buffer.

    Behind what the program needs, the buffer has room for ``more`` numbers of the loop's own.
    """

    size: int
    more: int
    program: Program
    looking: Program
    buffer: np.ndarray


class Apart(NamedTuple):
    """A program and a copy of an engine's state, for a loop that leaves the engine as it is."""

    program: Program
    weights: np.ndarray
    vector: np.ndarray


class CompiledEngine(Engine):
    """Hand rounds to the loop over their kind of rows."""

    #: A valid label and the width of predictions, for predicting; None where they vary by round.
    _label: tuple[np.ndarray, int] | None = None
    _linked: Linked | None = None

    def _unshare(self) -> None:
        if (linked := self._linked) is not None:
            self._linked = linked._replace(buffer=linked.buffer.copy())

    @property
    def kernels(self) -> tuple[Kernel | None, ...]:
        """The kernels of the parts, in the order of a program's slots."""
        loss, decoder, rate, _, _, detector = self.parts
        task = self.parts.task
        assert task.kernels is not None and loss.kernels is not None
        return (
            task.kernels.encode,
            decoder.draw_kernel or task.kernels.draw,
            loss.kernels.loss,
            loss.kernels.values,
            decoder.mix,
            decoder.kernel,
            rate.kernel,
            None if detector is None else detector.kernel,
        )

    def _link(self, size: int, more: int) -> Linked:
        """Make the parts ready for rounds of up to ``size`` scores; compiling happens here."""
        loss, decoder, rate, _, intercept, detector = self.parts
        task = self.parts.task
        program = Program.link(
            self.kernels,
            (
                task.params(size),
                loss.params(size),
                decoder.params,
                rate.params(self.parts.setting),
                () if detector is None else (task.largest_loss, *detector.params()),
            ),
            (
                size,
                loss.workspace(size),
                max(decoder.scratch(size), task.geometry.scratch(size)),
                len(rate.memory(self.parts.setting)),
                int(intercept),
            ),
            self.replay,
            loss.gap_place(size),
            rate.relative,
        )
        return Linked(size, more, program, program.looking(), program.buffer(more))

    @cached_property
    def _dim(self) -> int:
        """How many scores there are, where all rounds have the same number."""
        return self.parts.task.dim

    def wants_transposed(self, rows: Rows) -> bool:
        """Say whether the loop over these rows reads the weights transposed."""
        return rows.transposed

    def holds(self, rows: Rows) -> bool:
        """Say whether the weights are ready for rows of this kind."""
        return self.stored is not None and self.transposed == rows.transposed

    def _shadow(self, weights: np.ndarray | None) -> np.ndarray:
        """Return a comparator's weights as they are stored here."""
        if weights is None:
            return NOBODY
        return np.ascontiguousarray(weights.T if self.transposed else weights)

    def play_one(
        self,
        row: Rows,
        labels: CheckedLabels,
        uniforms: np.ndarray,
        trace: np.ndarray,
        prediction: np.ndarray,
    ) -> int:
        """Play one round; a dense row is handed to the loop without a block around it."""
        if not self.linked or self.replay or type(row) is not DenseRows:
            return super().play_one(row, labels, uniforms, trace, prediction)
        given = self.arguments(cast(row.array, self.dtype), labels, uniforms, trace, prediction)
        loop = row.loop(self.dtype).compiled
        if self.parts.restart is None:
            played: int = loop(*given)
            return played
        vector = self.vector
        rounds, alarm = vector.item(at.ROUNDS), vector.item(at.ALARM)
        try:
            vector[at.ALARM] = at.QUIET
            played = loop(*given)
            if not played:
                vector[at.ALARM] = alarm
            elif vector.item(at.ALARM) == at.GIVEN:
                self.set_back()
            return played
        except BaseException:
            if vector[at.ROUNDS] == rounds:
                vector[at.ALARM] = alarm
            self.settle()
            raise

    @property
    def linked(self) -> bool:
        """Whether dense rows can be handed to the loop directly."""
        ready = self._linked is not None and self.stored is not None and not self.transposed
        return ready and not self.parts.loss.inexact  # whose gaps need rows of their own

    def arguments(
        self,
        inputs: np.ndarray,
        labels: CheckedLabels,
        uniforms: np.ndarray,
        trace: np.ndarray,
        predictions: np.ndarray,
    ) -> tuple[Any, ...]:
        """Return the arguments of the loop over dense rows, once the parts are linked."""
        assert self._linked is not None
        _, _, program, _, buffer = self._linked
        return (
            program.code,
            program.params,
            (inputs,),
            labels,
            uniforms,
            self.stored,
            NOBODY,
            self.vector,
            buffer,
            trace,
            predictions,
        )

    def apart(self, rows: DenseRows) -> Apart:
        """Return a copy of the state, ready for dense rows, which goes on by itself."""
        _, _, linked = self._ready(rows)
        vector, stored = self.vector.copy(), self.stored
        if stored is None:
            weights = self._started(rows)
            vector[at.REFRESH] = refresh_after(weights)
        else:
            weights = stored.T.copy() if self.transposed else stored.copy()
        return Apart(linked.program, weights, vector)

    def advance(self, block: Block) -> int:
        """Hand the rounds to the loop."""
        rows, start, stop, labels, _, trace, predictions, *_ = block
        rows, _, (_, _, program, _, buffer) = self._ready(rows)
        self.parts.loss.check_size(rows.largest if isinstance(rows, Groups) else 0)
        solved, scores = bool(program.code[at.GAP] >= 0), block.scores
        if solved or scores is not None:
            more = 0 if scores is None else scores.shape[1]
            trace = np.zeros((at.SCORES + more, stop - start))
            trace[: len(block.trace)] = block.trace
        played: int = rows.loop(self.dtype).compiled(
            program.code,
            program.params,
            rows.arrays(start, stop, self.dtype),
            rows.loop_labels(labels),
            block.extras,
            self.stored,
            self._shadow(block.shadow),
            self.vector,
            buffer,
            trace,
            predictions,
        )
        if trace is not block.trace:
            block.trace[:, :played] = trace[: len(block.trace), :played]
        if scores is not None:
            scores[:played] = trace[at.SCORES :, :played].T
        if solved:
            self.parts.loss.check_gaps(trace[at.GAP_ROW, :played], trace[at.LOSS_ROW, :played])
            for gaps, row in ((block.gaps, at.GAP_ROW), (block.comparator_gaps, at.THEIR_GAP_ROW)):
                if gaps is not None:
                    gaps[:played] = trace[row, :played]
        return played

    def _ready(self, rows: Rows) -> tuple[Rows, int, Linked]:
        """Return rows, how many scores they have at most, and the parts linked for that.

        Callers use this result and not the engine's attribute, which another thread may replace.
        """
        size = rows.most_scores if isinstance(rows, Groups) else self._dim
        linked, more = self._linked, rows.gradient_size
        if linked is None or size > linked.size or more > linked.more:
            known = (0, 0) if linked is None else linked[:2]
            self._linked = linked = self._link(max(size, known[0]), max(more, known[1]))
        return rows, size, linked

    def look(self, rows: Rows, uniforms: np.ndarray, means: bool = True) -> Asked:
        """Let the loop score and predict rounds, in batches, and change nothing.

        The buffer is allocated here, so that any number of threads may predict. Where the weights
        are not in the layout that the loop over these rows needs, the parts are called one by one.
        """
        if self.stored is not None and self.transposed != rows.transposed:
            return super().look(rows, uniforms, means)
        stored = self._started(rows) if self.stored is None else self.stored
        rows, size, linked = self._ready(rows)
        program, buffer = linked.looking, np.zeros(linked.buffer.size)
        ragged = isinstance(rows, Groups)
        wide = at.MEANS + size * (means + (means and not ragged))
        label, width = self._any_label(rows, size)
        made = np.empty((rows.rounds, width), dtype=np.int64)
        made.fill(-1)  # a query may have fewer items
        labels: CheckedLabels
        tables, loop = [], rows.loop(self.dtype).compiled
        whole = rows.rounds <= rows.block
        for start in range(0, rows.rounds, rows.block):
            stop = rows.rounds if whole else min(rows.rounds, start + rows.block)
            table = np.empty((wide, stop - start))
            if isinstance(rows, Groups):
                labels = self._any_labels(rows, start, stop)
            else:
                labels = label if stop - start == 1 else np.repeat(label, stop - start, axis=0)
            good = loop(
                program.code,
                program.params,
                rows.arrays(start, stop, self.dtype),
                rows.loop_labels(labels),
                uniforms if whole else uniforms[start:stop],
                stored,
                NOBODY,
                self.vector,
                buffer,
                table,
                made if whole else made[start:stop],
            )
            if good < stop - start:
                refuse(rows, start + good)
            tables.append(table)
        if not means:
            return Asked(made)
        encoded = (tables[0] if whole else np.hstack(tables))[at.MEANS :].T
        if not isinstance(rows, Groups):
            return Asked(made, encoded[:, :size], scores=encoded[np.newaxis, :, size:])
        pairs, unfolded = (
            zip(encoded, rows.score_sizes, strict=True),
            self.parts.task.geometry.unfolded,
        )
        return Asked(made, [unfolded(row[:own].copy()) for row, own in pairs])

    def _started(self, rows: Rows) -> np.ndarray:
        """Return what the weights begin as, in the layout of these rows."""
        scores, columns = self.parts.shape(rows.features)
        shape = (columns, scores) if rows.transposed else (scores, columns)
        return self.parts.first_weights(aligned_zeros(shape, self.dtype, not rows.transposed))

    def _any_label(self, rows: Rows, size: int) -> tuple[np.ndarray, int]:
        """Return some label, as a row, and how wide predictions are."""
        if (known := self._label) is None:
            task = self.parts.task
            label = task.labels.any(rows.largest if isinstance(rows, Groups) else size)
            known = label[np.newaxis], task.predictions.width([label])
            self._label = None if isinstance(rows, Groups) else known
        return known

    def _any_labels(self, rows: Groups, start: int, stop: int) -> list[np.ndarray]:
        """Return some label for each of some rounds."""
        sizes = rows.sizes[start:stop].tolist()
        known = {size: self.parts.task.labels.any(size) for size in set(sizes)}
        return [known[size] for size in sizes]
