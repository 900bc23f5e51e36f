"""When labels come: how many rounds after its prediction each label arrives.

A delay of 0 is a label at once. Delays are a function of the number of the round alone, so that a
stream that is played in pieces has the delays of one run.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.state import Draws

__all__ = ["Batches", "Delay", "Fixed", "Geometric", "delays_of"]

#: The largest delay.
MOST = 2**40


class Delay(ABC):
    """Base of delays."""

    @abstractmethod
    def rounds(self, first: int, count: int) -> np.ndarray:
        """Return the delays of ``count`` rounds from number ``first`` on, negative for never."""


@dataclass(frozen=True)
class Fixed(Delay):
    """Every label comes after the same number of rounds.

    >>> Fixed(100).rounds(0, 3)
    array([100, 100, 100])
    """

    delay: int

    def __post_init__(self) -> None:
        """Refuse a delay that is no number of rounds."""
        _check("a fixed delay", self.delay, 0)

    def rounds(self, first: int, count: int) -> np.ndarray:
        """Return the same delay for all."""
        return np.full(count, self.delay, dtype=np.int64)


@dataclass(frozen=True)
class Geometric(Delay):
    r"""In every round after its prediction a label comes with the same chance.

    The chance is :math:`1 / (1 + \text{mean})`, so that delays have this mean.

    >>> Geometric(mean=50, seed=0).rounds(0, 5)
    array([57, 12,  0, 23, 12])
    """

    mean: float
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a mean that is not positive and finite."""
        number = isinstance(self.mean, (int, float)) and not isinstance(self.mean, bool)
        if not number or not 0.0 < self.mean <= 1e9:
            raise InputError(f"the mean of delays lies between 0 and 1e9, but is {self.mean!r}")
        _check("a seed", self.seed, 0)

    def rounds(self, first: int, count: int) -> np.ndarray:
        """Return draws by the number of the round."""
        uniforms = Draws.from_seed(self.seed, BRANCH).uniforms(first, count)[:, 0]
        stay = math.log(self.mean / (1.0 + self.mean))
        return np.floor(np.log1p(-uniforms) / stay).astype(np.int64)


@dataclass(frozen=True)
class Batches(Delay):
    """Labels come together, after every ``size`` rounds: once a day, say.

    >>> Batches(3).rounds(0, 7)
    array([2, 1, 0, 2, 1, 0, 2])
    """

    size: int

    def __post_init__(self) -> None:
        """Refuse a size that is no number of rounds."""
        _check("a batch", self.size, 1)

    def rounds(self, first: int, count: int) -> np.ndarray:
        """Return how many rounds of the batch come after each."""
        return self.size - 1 - (first + np.arange(count, dtype=np.int64)) % self.size


#: The branch of a seed for delays, so that they are not the draws of a learner.
BRANCH = 5


def delays_of(delay: Delay | npt.ArrayLike, first: int, count: int) -> np.ndarray:
    """Return the delays of rounds: by a distribution, a number, or an array with one for each."""
    if isinstance(delay, Delay):
        made = np.asarray(delay.rounds(first, count))
        what = f"{delay!r} gives"
    elif isinstance(delay, (int, np.integer)) and not isinstance(delay, bool):
        return Fixed(int(delay)).rounds(first, count)
    else:
        try:
            made = np.array(delay)
        except (TypeError, ValueError) as error:
            raise InputError(f"delays must be whole numbers: {error}") from None
        what = "there are"
    if made.shape != (count,):
        raise InputError(f"expected a delay for each of {count} rounds, but {what} {made.shape}")
    if made.dtype.kind not in "iu":
        raise InputError(f"delays must be whole numbers, but are of type {made.dtype}")
    if (made > MOST).any():
        raise InputError(f"a delay of {made.max()} rounds is too long: {MOST} at most")
    return made.astype(np.int64)


def _check(what: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{what} must be a whole number, not {value!r:.80}")
    if not least <= value <= MOST:
        raise InputError(f"{what} must lie between {least} and {MOST}, but is {value}")
