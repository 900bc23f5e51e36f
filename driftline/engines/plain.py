"""The rounds one by one in Python, for parts without kernels."""

from __future__ import annotations

import numpy as np

from driftline.engines.base import Block, Engine
from driftline.kernels import program as at
from driftline.kernels.round import FARTHEST_SQ, REFUSED, RELAXED, ROUNDED, TINY
from driftline.state import Checkpoint, State
from driftline.typing import Label

__all__ = ["PlainEngine"]


class PlainEngine(Engine):
    """The paper's algorithm, step by step."""

    compiled = False

    def state(self, weights: bool = True) -> State:
        """Return the state as a value, with the norm that compiled rounds would go on from."""
        made, stored = super().state(weights), self.stored
        if stored is None or not self.parts.have_kernels:
            return made
        return made.replaced(norm_sq=float(np.vdot(stored, stored)))

    def restore(self, state: State) -> None:
        """Go on from a state; weights that are stored with a scale are multiplied by it."""
        if state.scale != 1.0:
            rows = state.scaled_weights
            state = state.replaced(weights=rows, scale=1.0, transposed=False)
        super().restore(state)

    def go_back(self, before: Checkpoint, rounds: int) -> None:
        """Go back to where a round began: its weights are in another array."""
        before.restore()

    def set_back(self) -> None:
        """Restart, with another array for the weights."""
        self.stored = np.empty_like(self.stored)
        super().set_back()

    def advance(self, block: Block) -> int:
        """Predict, pay, learn, for every round of the block up to an alarm."""
        for t in range(block.stop - block.start):
            if not self._play_round(block, t):
                return t
            asked = block.asked is not None and block.asked[t]
            if not asked and self._alarmed(block, t):
                return t + 1
        return block.stop - block.start

    def _alarmed(self, block: Block, t: int) -> bool:
        """Pass the round to the detector; return whether it gives an alarm, and record that."""
        detector, largest = self.parts.restart, self.parts.task.largest_loss * block.weight(t)
        if detector is None or largest == 0.0:
            return False
        own = self.vector[at.MEMORY + len(self.parts.rate.memory(self.parts.setting)) :]
        share = min(1.0, max(0.0, float(block.column("risk")[t]) / largest))
        given = detector.sees(share, own)
        if self.replay:
            block.write(t, own_alarm=given)
            return False
        if not given:
            return False
        self.vector[at.ALARM] = at.GIVEN
        return True

    def _play_round(self, block: Block, t: int) -> bool:
        loss, decoder, _, domain, intercept, _ = self.parts
        state, task = self.vector, self.parts.task
        rows, index, weight = block.rows, block.start + t, block.weight(t)
        input_sq = rows.norm_sq(index, intercept)
        if not input_sq < FARTHEST_SQ:
            return False
        assert self.stored is not None
        theta = rows.scores(self.stored, False, index, intercept)
        if block.scores is not None:
            block.scores[t] = theta
        label = task.labels.value(block.labels[t])
        value, grad = loss.value_and_grad(theta, label)
        value, grad, risk = weight * value, weight * grad, weight * decoder.risk(theta, label)
        if not np.isfinite(value):
            return False
        input_sq *= weight
        prediction = decoder.draw(theta, block.uniforms[t])
        written = task.predictions.numbers(prediction)
        block.predictions[t, : written.size] = written
        target_loss = weight * task.loss(prediction, label)
        if block.asked is not None and block.asked[t]:
            block.write(t, loss=value, risk=risk, target_loss=target_loss)
            return True
        gradient = rows.gradient(grad, index, intercept)
        grad_sq = float(np.vdot(gradient, gradient))

        if block.shadow is not None:
            self._watch(block, t, label)
        eta = self._choose_step(block, t, value, risk, grad_sq, input_sq)
        if eta < 0.0:
            return False
        if eta > 0.0:
            self.stored = np.ascontiguousarray(domain.project(self.stored - eta * gradient))
        state[at.ROUNDS] += 1
        state[at.LARGEST_INPUT_SQ] = max(state[at.LARGEST_INPUT_SQ], input_sq)

        used = float(state[at.ETA])
        block.write(t, loss=value, risk=risk, target_loss=target_loss, eta=used, grad_sq=grad_sq)
        if block.gaps is not None:
            block.gaps[t] = weight * loss.solver_gap(theta)
        return True

    def _choose_step(
        self, block: Block, t: int, value: float, risk: float, grad_sq: float, input_sq: float
    ) -> float:
        """Return the step, 0 for none: as :func:`driftline.kernels.round.choose_step` does."""
        rate, setting = self.parts.rate, self.parts.setting
        state, stored, weight = self.vector, self.stored, block.weight(t)
        assert stored is not None
        eta, memory, undo = 0.0, state[at.MEMORY :], state[at.MEMORY :].copy()
        if not grad_sq < FARTHEST_SQ:
            return REFUSED
        if grad_sq > TINY:
            previous = float(state[at.ETA])
            eta = rate.next(value, risk, grad_sq, input_sq, previous, setting, memory)
        most = (RELAXED if weight > 0.0 else 1.0) * float(state[at.MOST_ETA])
        if rate.relative:
            eta *= weight
        if eta > 0.0 and weight > 1.0:
            eta = min(eta, max(2.0 * (value - risk) / grad_sq, eta / weight))
            lasts = value - risk > ROUNDED * value and not rate.relative
            most = min(most, eta) if lasts else most
        eta = min(eta, most)
        if self.replay:
            block.write(t, own_eta=eta)
            eta = float(block.column("eta")[t]) if eta > 0.0 else 0.0
        length_sq = float(np.vdot(stored, stored)) + eta * eta * grad_sq
        if eta > 0.0 and not length_sq < FARTHEST_SQ:
            memory[:] = undo
            return REFUSED
        if eta > 0.0:
            state[at.ETA] = eta
        state[at.MOST_ETA] = most
        return eta

    def _watch(self, block: Block, t: int, label: Label) -> None:
        """Record a comparator's loss, its inner product with the weights, and their norm."""
        loss, shadow, own = self.parts.loss, block.shadow, self.stored
        assert shadow is not None and own is not None
        theta = block.rows.scores(shadow, False, block.start + t, self.parts.intercept)
        weight, (value, _) = block.weight(t), loss.value_and_grad(theta, label)
        inner, norm_sq = float(np.vdot(own, shadow)), float(np.vdot(own, own))
        block.write(t, comparator_loss=weight * value, inner=inner, norm_sq=norm_sq)
        if block.comparator_gaps is not None:
            block.comparator_gaps[t] = weight * loss.solver_gap(theta)
