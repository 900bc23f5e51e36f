"""The rounds one by one in Python, for parts without kernels."""

from __future__ import annotations

import numpy as np

from driftline.engines.base import Block, Engine
from driftline.kernels import program as at
from driftline.kernels.round import TINY

__all__ = ["PlainEngine"]


class PlainEngine(Engine):
    """The algorithm as the paper has it."""

    def play(self, block: Block) -> int:
        """Predict, pay, learn, for every round of the block."""
        for t in range(block.stop - block.start):
            if not self._play_round(block, t):
                return t
        return block.stop - block.start

    def _play_round(self, block: Block, t: int) -> bool:
        loss, decoder, rate, domain, intercept = self.parts
        setting, state = self.parts.setting, self.state
        x = block.rows.row(block.start + t)
        if intercept:
            x = np.append(x, 1.0)
        input_sq = float(x @ x)
        if not np.isfinite(input_sq):
            return False
        assert self.stored is not None
        theta = self.stored @ x

        label = loss.task.label(block.labels[t])
        value, grad = loss.value_and_grad(theta, label)
        if not np.isfinite(value):
            return False
        risk = decoder.risk(theta, label)
        prediction = decoder.draw(theta, block.uniforms[t])
        grad_sq = float(grad @ grad) * input_sq

        eta = 0.0
        if grad_sq > TINY:
            previous, memory = float(state[at.ETA]), state[at.MEMORY :]
            eta = rate.next(value, risk, grad_sq, input_sq, previous, setting, memory)
        if eta > 0.0:
            state[at.ETA] = eta
            self.stored = domain.project(self.stored - eta * np.outer(grad, x))
        state[at.ROUNDS] += 1
        state[at.LARGEST_INPUT_SQ] = max(state[at.LARGEST_INPUT_SQ], input_sq)

        target_loss = loss.task.loss(prediction, label)
        block.trace[:, t] = value, risk, target_loss, state[at.ETA], grad_sq
        block.predictions[t] = prediction
        return True
