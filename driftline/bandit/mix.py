"""Policies that are mixed: each has a table of weights, and all have one draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftline.bandit.policy import Policy
from driftline.errors import InputError
from driftline.state.arena import Field

__all__ = ["FLOOR", "RATE", "SHARE", "Mix"]

#: By how much weights of policies follow estimates of their hits; the share of all weights that is
#: spread evenly after a hit; and the least probability that estimates are divided by.
RATE, SHARE, FLOOR = 0.3, 0.0002, 0.02


class Mix:
    """Policies, and what is learned of them: their weights in the draw, and their weights of rows.

    ``side`` is by how much the balls of weights are larger than the policies say.
    """

    def __init__(self, policies: Sequence[Policy], side: float = 1.0):
        policies = tuple(policies) if isinstance(policies, Sequence) else ()
        if not policies or not all(isinstance(policy, Policy) for policy in policies):
            raise InputError(f"policies must be some dl.bandit.Policy(...), not {policies!r:.80}")
        self.policies, self._side = policies, side

    def fields(self) -> tuple[Field, ...]:
        """Count rounds, and keep the weights of policies, and their weights of features."""
        count = len(self.policies)
        return (
            Field("rounds", least=0.0, whole=True),
            Field("shares", (count,), fill=1.0 / count, least=0.0),
            Field("weights", (count, "classes", "features")),
        )

    def check(self, memory: Any) -> None:
        """Raise if weights leave their ball, or those of policies are not a distribution."""
        if not (memory.shares > 0.0).all() or abs(memory.shares.sum() - 1.0) > 1e-6:
            raise InputError("the weights of policies must be positive and add up to 1")
        norms = np.sqrt(np.einsum("ikj,ikj->i", memory.weights, memory.weights))
        radii = 0.5 * np.array([self.diameter(policy) for policy in self.policies])
        if (norms > radii * (1.0 + 1e-6)).any():
            raise InputError(f"weights must lie in balls of radius {radii}, but have norms {norms}")

    def diameter(self, policy: Policy) -> float:
        """Return the diameter of the ball in which the weights of a policy lie."""
        return self._side * policy.diameter

    @property
    def constants(self) -> list[float]:
        """What weights of policies follow, and what a kernel needs of each policy."""
        made = [RATE, SHARE, FLOOR]
        for policy in self.policies:
            made += [*policy.constants[:-1], 0.5 * self.diameter(policy)]
        return made

    def words(self, shares: np.ndarray) -> list[str]:
        """Return a line for every policy, with its weight."""
        pairs = zip(self.policies, shares, strict=True)
        return [f"  {share:6.3f}  {policy!r}" for policy, share in pairs]
