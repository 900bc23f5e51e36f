"""Play rounds, and keep the account against a comparator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driftline.comparators.checking import Comparator
from driftline.engines import Block, Engine, Parts
from driftline.errors import InputError
from driftline.regret.tally import Watched

__all__ = ["Watch", "mark_idle"]

#: The columns of the record that the account needs.
SEEN = ("loss", "risk", "target_loss", "eta", "grad_sq", "comparator_loss")


class Watch:
    """An engine and a comparator: plays blocks, and records the distances between their weights.

    Rounds are counted from the first round of the account.
    """

    def __init__(self, engine: Engine, comparator: Comparator):
        self.engine, self.comparator = engine, comparator
        self.rounds = 0
        self._weights: np.ndarray | None = None
        self._end: float | None = None  # the squared distance after the last step

    def copy(self) -> Watch:
        """Return an independent copy."""
        other = Watch(self.engine, self.comparator)
        other.rounds, other._weights, other._end = self.rounds, self._weights, self._end
        return other

    def play(self, block: Block) -> tuple[int, Watched]:
        """Play a block whose trace has rows for the comparator; return what was learned from.

        Blocks are cut where the comparator changes, and where the engine starts again. Rounds that
        are only predicted have no entry, and no weights of the comparator. The gaps of a solver
        count on the side on which they can hurt: the learner's if its losses may be too large, else
        the comparator's, whose losses may be too small.
        """
        count = block.stop - block.start
        tells = np.arange(count) if block.asked is None else np.flatnonzero(~block.asked)
        loss = self.engine.parts.loss
        if loss.inexact and loss.overestimates and block.gaps is None:
            block = block._replace(gaps=np.zeros(count))
        elif loss.inexact and not loss.overestimates:
            block = block._replace(comparator_gaps=np.zeros(count))
        if block.restarted is None:
            block = block._replace(restarted=np.zeros(count, dtype=bool))
        distance, old, move = np.zeros((3, count))
        if not len(tells):
            return sum(self.engine.stretches(block)), _seen(block, tells, distance, old, move, 0.0)
        told = done = 0
        for weights, stop in self.comparator.pieces(self.rounds, self.rounds + len(tells)):
            size = min(stop - self.rounds, len(tells) - told)
            last = count if told + size == len(tells) else int(tells[told + size - 1]) + 1
            if weights is not self._weights:
                self._check(weights)
                previous = weights if self._weights is None else self._weights
                move[tells[told]] = float(np.linalg.norm(weights - previous))
            self._look(weights)
            norm = float(np.vdot(weights, weights))
            piece = block.cut(done, last - done)._replace(shadow=weights)
            for played in self.engine.stretches(piece):
                done += played
                before, told = told, int(np.searchsorted(tells, done))
                if before == told:
                    continue
                part = slice(before, told) if block.asked is None else tells[before:told]
                inner, own = block.column("inner")[part], block.column("norm_sq")[part]
                distance[part] = np.maximum(own - 2.0 * inner + norm, 0.0)
                old[part] = distance[part]
                if self._end is not None:
                    old[tells[before]] = self._end
                self._end = self._look(weights)
            if done < last:
                return done, _seen(block, tells[:0], distance, old, move, 0.0)
            self._weights = weights
            self.rounds += size
        assert self._end is not None
        return done, _seen(block, tells, distance, old, move, self._end)

    def _look(self, weights: np.ndarray) -> float:
        """Return the squared distance of the engine's current weights."""
        inner, own = self.engine.compare(weights)
        return max(0.0, own - 2.0 * inner + float(np.vdot(weights, weights)))

    def _check(self, weights: np.ndarray) -> None:
        """Refuse weights of another shape or outside the domain."""
        have = self.engine.weights
        assert have is not None
        if weights.shape != have.shape:
            raise InputError(
                f"the comparator's weights have shape {weights.shape}, but the learner's have "
                f"{have.shape}"
            )
        domain = self.engine.parts.domain
        away = float(np.linalg.norm(weights - domain.project(weights)))
        if away > 1e-9 * max(1.0, float(np.linalg.norm(weights))):
            raise InputError(
                f"the comparator must lie in the domain {domain!r}, but in round {self.rounds} it "
                f"is {away:.4g} away: its norm is {np.linalg.norm(weights):.4g}"
            )


def mark_idle(seen: Watched, parts: Parts) -> Watched:
    """Mark rounds without a gap, in which the rate made no step, as idle.

    They occur only without a rate floor. No inequality holds for such a round, and its neighbours
    do not need one, since the weights do not change: its own risk is used in its place.
    """
    resolution = parts.rate.resolution
    if parts.decoder.rate_floor > 0.0 or resolution is None:
        return seen
    return replace(seen, idle=seen.loss - seen.risk <= resolution * seen.loss)


def _seen(
    block: Block,
    tells: np.ndarray,
    distance: np.ndarray,
    old: np.ndarray,
    move: np.ndarray,
    end: float,
) -> Watched:
    """Return the rounds of a block at some places."""
    count = len(distance)
    assert block.restarted is not None
    counted = block.gaps if block.comparator_gaps is None else block.comparator_gaps
    weight = np.ones(count) if block.sample_weight is None else block.sample_weight
    columns = {name: block.column(name) for name in SEEN}
    columns |= {"distance": distance, "old_distance": old, "move": move}
    columns |= {"gap": np.zeros(count) if counted is None else counted, "sample_weight": weight}
    columns |= {"restarted": block.restarted, "idle": np.zeros(count, dtype=bool)}
    if len(tells) < count:
        columns = {name: column[tells] for name, column in columns.items()}
    return Watched(**columns, end=end)
