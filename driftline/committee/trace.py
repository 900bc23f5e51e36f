"""What happened in a committee, one row a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.trace import Trace

__all__ = ["CommitteeTrace"]


@dataclass(frozen=True, eq=False, repr=False)
class CommitteeTrace:
    """The record of a committee's run.

    ``target_loss`` and ``risk`` are the committee's own; for a vote, which is certain, they are the
    same. ``weights`` has a row of the members' weights before every round, ``member_risk`` a
    row of their expected losses; ``members`` are their own traces, with losses, steps and
    gradients.
    """

    risk: np.ndarray
    target_loss: np.ndarray
    prediction: np.ndarray
    weights: np.ndarray
    member_risk: np.ndarray
    members: tuple[Trace, ...]

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.risk)

    def __repr__(self) -> str:
        """Name the rounds and the totals."""
        return (
            f"CommitteeTrace({len(self)} rounds, {len(self.members)} members, target loss "
            f"{self.target_loss.sum():g}, best member {self.member_risk.sum(axis=0).min():.6g})"
        )

    @property
    def average(self) -> np.ndarray:
        """The weighted average of the members' risks, which drawing a member would pay."""
        return (self.weights * self.member_risk).sum(axis=1)
