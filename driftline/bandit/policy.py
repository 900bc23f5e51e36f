"""How one of several learners from bandit feedback steps and explores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftline.errors import InputError
from driftline.parts import Part, check_flag

__all__ = ["DEFAULT", "Policy"]


@dataclass(frozen=True)
class Policy(Part):
    r"""Steps of one size, and the exploration that goes with them.

    Parameters
    ----------
    step
        The size of steps, or what it is in the first round if it decays.
    decaying
        Whether the step of round t is ``step`` over the root of t.
    exploration
        The share of the exploration that :class:`~driftline.decoders.Exploring` says the step
        needs. With less there are fewer mistakes where classes are easy to tell apart, and a
        larger slack.
    clip
        The largest inverse probability by which a gradient is multiplied; None for no limit.
        A small one makes steps less random, and biased.
    misses
        The length of steps that are made after a miss, as a multiple of ``step``, along the
        gradient of :math:`-\log_2 (1 - q)`, with q the probability that the softmax has for what
        was predicted. 0 for none, as in the theorem.
    diameter
        That of the ball in which weights lie.

    >>> Policy(step=0.3).unbiased, Policy(step=0.3, clip=3.0).unbiased
    (True, False)
    """

    step: float = 0.1
    decaying: bool = False
    exploration: float = 1.0
    clip: float | None = None
    misses: float = 0.0
    diameter: float = 20.0

    def __post_init__(self) -> None:
        """Refuse numbers that are no lengths."""
        check_flag("decaying", self.decaying)
        limits = {
            "step": (1e-9, 1e6),
            "exploration": (1e-9, 1.0),
            "misses": (0.0, 1e6),
            "diameter": (1e-9, 1e9),
        }
        if self.clip is not None:
            limits["clip"] = (1.0, 1e15)
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not least <= value <= most:
                raise InputError(
                    f"{name} must be a number from {least:g} to {most:g}, not {value!r:.80}"
                )

    @property
    def unbiased(self) -> bool:
        """Whether gradients are right on average, so that the theorem holds for the policy."""
        return self.clip is None and self.misses == 0.0

    def at(self, rounds: np.ndarray) -> np.ndarray:
        """Return the step after each number of rounds; it never grows."""
        return (
            self.step / np.sqrt(rounds + 1.0) if self.decaying else np.full(len(rounds), self.step)
        )

    @property
    def constants(self) -> tuple[float, ...]:
        """The fields as numbers, for the kernel."""
        clip = math.inf if self.clip is None else self.clip
        radius = 0.5 * self.diameter
        return (self.step, float(self.decaying), self.exploration, clip, self.misses, radius)


def _quick(step: float, decaying: bool, diameter: float) -> Policy:
    """Return a policy that explores little and learns from misses."""
    return Policy(step, decaying, 0.002, clip=3.0, misses=3.0, diameter=diameter)


#: Some policies for changing and for steady streams that make few mistakes, and some that a theorem
#: holds for, whatever the weights of all are.
DEFAULT = (
    _quick(0.1, False, 20.0),
    _quick(0.3, False, 20.0),
    _quick(1.0, False, 20.0),
    _quick(0.3, False, 60.0),
    _quick(1.0, True, 100.0),
    _quick(3.0, True, 100.0),
    _quick(10.0, True, 100.0),
    Policy(0.03),
    Policy(0.1),
    Policy(0.3),
    Policy(1.0, decaying=True),
)
