"""All rounds in one compiled loop."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from driftline.engines.base import Block, Engine
from driftline.kernels import Program
from driftline.models import Groups, Rows

__all__ = ["CompiledEngine"]


class CompiledEngine(Engine):
    """Hand rounds to the loop over their kind of rows."""

    @cached_property
    def program(self) -> Program:
        """The parts as the loop takes them; compiling happens here."""
        loss, decoder, rate, _, intercept = self.parts
        task = loss.task
        assert task.kernels is not None and loss.kernels is not None
        return Program.link(
            (
                task.kernels.encode,
                task.kernels.draw,
                loss.kernels.loss,
                loss.kernels.values,
                decoder.mix,
                decoder.kernel,
                rate.kernel,
            ),
            (task.params, loss.params, decoder.params, rate.params(self.parts.setting)),
            (task.dim, loss.workspace, decoder.scratch, int(intercept)),
        )

    @cached_property
    def _buffer(self) -> np.ndarray:
        return self.program.buffer()

    def wants_transposed(self, rows: Rows) -> bool:
        """Say whether the loop over these rows reads the weights transposed."""
        return rows.transposed

    def play(self, block: Block) -> int:
        """Hand the rounds to the loop."""
        program = self.program
        rows, start, stop, labels, uniforms, trace, predictions, _ = block
        assert not isinstance(rows, Groups)
        return rows.loop.compiled(
            program.code,
            program.params,
            *rows.arrays(start, stop),
            labels,
            uniforms,
            self.stored,
            self.state,
            self._buffer,
            trace,
            predictions,
        )
