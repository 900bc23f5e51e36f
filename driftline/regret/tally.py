r"""Sums over rounds, in constant memory, from which every form of the bound follows.

For projected gradient steps and any weights :math:`U_t` of the domain,

.. math:: 2 \eta_t (L_t(W_t) - L_t(U_t)) \le \|W_t - U_t\|^2 - \|W_{t+1} - U_t\|^2
   + \eta_t^2 \|G_t\|^2.

Dividing by :math:`2 \eta_t` (or not) and adding up leaves the comparator's losses, a telescope of
distances, and the residuals :math:`r_t = \frac{\eta_t}2 \|G_t\|^2 - (L_t(W_t) - \mathbb E \ell_t)`,
which are at most 0 where the step was admissible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from driftline.state import Stateful

__all__ = ["Tally", "Watched"]

#: Columns of a learner by itself, and those beside a comparator.
ALONE = ("loss", "risk", "target_loss", "eta", "grad_sq")
COMPARED = ("gap", "comparator_loss", "distance", "old_distance", "move")


@dataclass(frozen=True)
class Watched:
    """Rounds beside a comparator, one entry each.

    ``distance`` is the squared distance between the weights of learner and comparator before the
    step; ``old_distance`` the squared distance after the previous step, to the comparator of that
    round; ``move`` the distance between these two comparators; ``end`` the squared distance after
    the last step. ``restarted`` marks rounds before which the learner had started again: there the
    two distances are of different weights. ``idle`` marks rounds without a step that should have
    had one: their own risk stands for the comparator's loss. All losses have been multiplied by
    ``sample_weight``.
    """

    loss: np.ndarray
    risk: np.ndarray
    target_loss: np.ndarray
    eta: np.ndarray
    grad_sq: np.ndarray
    gap: np.ndarray
    comparator_loss: np.ndarray
    distance: np.ndarray
    old_distance: np.ndarray
    move: np.ndarray
    restarted: np.ndarray
    idle: np.ndarray
    sample_weight: np.ndarray
    end: float

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.loss)

    def over(self, start: int, stop: int) -> Watched:
        """Return some of the rounds."""
        end = self.end if stop == len(self) else float(self.old_distance[stop])
        return Watched(**{k: v[start:stop] for k, v in self.columns().items()}, end=end)

    def columns(self) -> dict[str, np.ndarray]:
        """Return the entries of all rounds by name."""
        return {k: v for k, v in vars(self).items() if k != "end"}

    @classmethod
    def alone(cls, columns: Mapping[str, np.ndarray], places: np.ndarray) -> Watched:
        """Return rounds of a learner without weights, which nothing is compared with."""
        made = {name: columns[name][places] for name in ALONE}
        made |= dict.fromkeys(COMPARED, np.zeros(len(places)))
        made["sample_weight"] = columns.get("sample_weight", np.ones(len(columns["risk"])))[places]
        flags = np.zeros(len(places), dtype=bool)
        return cls(**made, restarted=flags, idle=~flags, end=0.0)

    @classmethod
    def join(cls, parts: Sequence[Watched]) -> Watched:
        """Return rounds that follow each other as one."""
        columns = [part.columns() for part in parts]
        whole = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]}
        return cls(**whole, end=parts[-1].end)


@dataclass
class Tally(Stateful):
    """Sums over the rounds so far; ``largest_loss`` is the largest possible target loss of one.

    ``weight`` is the sum of sample weights, ``most_weight`` the largest of them.

    Bounds use ``owed`` in place of ``comparator_loss``: the two differ only in idle rounds.
    """

    __hash__ = Stateful.__hash__  # by identity: a tally changes

    largest_loss: float = 1.0
    rounds: int = 0
    weight: float = 0.0
    most_weight: float = 0.0
    risk: float = 0.0
    sampled: float = 0.0
    surrogate: float = 0.0
    comparator_loss: float = 0.0
    owed: float = 0.0
    path_length: float = 0.0
    residual: float = 0.0
    gap: float = 0.0
    variance: float = 0.0
    telescope: float = 0.0
    rises: float = 0.0
    charged: float = 0.0
    restarts: int = 0
    started: float = 0.0
    first_distance: float = 0.0
    first_eta: float = 0.0
    last_eta: float = 0.0
    end: float = 0.0
    weighted_risk: float = 0.0
    weighted_loss: float = 0.0
    weighted_rest: float = 0.0
    least_eta: float = math.inf
    largest_eta: float = 0.0
    farthest: float = 0.0
    smallest_eta: float = math.inf

    def add(self, seen: Watched) -> None:
        """Add the next rounds."""
        if not len(seen):
            return
        eta, residual = seen.eta, 0.5 * seen.eta * seen.grad_sq - (seen.loss - seen.risk)
        residual = np.where(seen.idle, 0.0, residual)
        owed = np.where(seen.idle, seen.risk, seen.comparator_loss)
        before = np.r_[self.last_eta, eta[:-1]]
        new, old, move = seen.distance, seen.old_distance, seen.move
        again = seen.restarted
        if self.rounds == 0:  # a move at the very start is not charged
            self.first_distance, self.first_eta = float(new[0]), float(eta[0])
            before[0] = eta[0]
            old, move = np.r_[new[0], old[1:]], np.r_[0.0, move[1:]]
            again = np.r_[False, again[1:]]
        rise = np.where(again, 0.0, 1.0 / eta - 1.0 / before)

        self.rounds += len(seen)
        self.weight += float(seen.sample_weight.sum())
        self.most_weight = max(self.most_weight, float(seen.sample_weight.max()))
        self.risk += float(seen.risk.sum())
        self.sampled += float(seen.target_loss.sum())
        self.surrogate += float(seen.loss.sum())
        self.comparator_loss += float(seen.comparator_loss.sum())
        self.owed += float(owed.sum())
        self.path_length += float(move.sum())
        self.residual += float(residual.sum())
        self.gap += float(seen.gap.sum())
        most = self.largest_loss * seen.sample_weight
        self.variance += float((seen.risk * np.maximum(most - seen.risk, 0.0)).sum())
        self.telescope += float((new / (2.0 * eta) - old / (2.0 * before)).sum())
        self.rises += float(np.maximum(rise, 0.0).sum())
        self.charged += float(np.where(again, 0.0, move / before).sum())
        self.restarts += int(again.sum())
        self.started += float((new[again] / (2.0 * eta[again])).sum())
        self.weighted_risk += float((eta * seen.risk).sum())
        self.weighted_loss += float((eta * owed).sum())
        self.weighted_rest += float((eta * (residual + seen.gap) + 0.5 * (new - old)).sum())
        self.least_eta = min(self.least_eta, float(eta[seen.risk > 0.0].min(initial=math.inf)))
        self.largest_eta = max(self.largest_eta, float(eta[owed > 0.0].max(initial=0.0)))
        self.farthest = max(self.farthest, float(new.max()), float(old.max()), seen.end)
        self.smallest_eta = min(self.smallest_eta, float(eta.min()))
        self.last_eta, self.end = float(eta[-1]), seen.end

    @property
    def exact(self) -> float:
        """The bound that loses nothing but the convexity of the losses and the projections."""
        ends = self.first_distance / (2.0 * self.first_eta) - self.end / (2.0 * self.last_eta)
        return self.owed + ends + self.telescope + self.residual + self.gap

    def diameter(self, diameter: float) -> float:
        """Return the bound with the distances at restarts, and the diameter elsewhere."""
        first = self.first_distance / (2.0 * self.first_eta) + self.started
        later = 0.5 * diameter**2 * self.rises + diameter * self.charged
        return self.owed + first + later + self.residual + self.gap

    @property
    def weighted_bound(self) -> float:
        """A bound of the total in which every round is weighted by its step."""
        return self.weighted_loss + 0.5 * (self.first_distance - self.end) + self.weighted_rest

    def rounding(self, precision: float) -> float:
        """Return how far off the bounds may be, for weights rounded to this relative precision.

        A distance has this relative error, and is divided by twice the step; the errors of rounds
        have either sign, and add up like a random walk.
        """
        walk = 8.0 * precision * math.sqrt(self.rounds)
        return walk * self.farthest / (2.0 * self.smallest_eta) + 1e-9 * max(1.0, self.surrogate)

    def deviation(self, chance: float) -> float:
        """Return by how much sampled losses may exceed expected ones, except with this chance.

        Freedman's inequality for the martingale of their differences, whose variance given the
        past is at most risk times (largest loss - risk). The sum of these is random too: the
        chance is shared by all powers of 2 it may lie below.
        """
        largest = self.largest_loss * self.most_weight
        if largest == 0.0:
            return 0.0
        scales = max(1, math.ceil(math.log2(max(2.0, self.rounds))))
        room = largest**2
        while room < self.variance:
            room *= 2.0
        log = math.log(scales / chance)
        third = largest * log / 3.0
        return third + math.sqrt(third**2 + 2.0 * room * log)


Tally._learned = tuple(own.name for own in fields(Tally))
