r"""Random Fourier features (Rahimi and Recht, 2007): smooth functions of all features together.

.. math:: \phi_i(x) = \sqrt{2 / n} \cos(\langle \omega_i, x \rangle + b_i), \qquad
   \omega_i \sim N(0, I / \text{bandwidth}^2), \quad b_i \sim U[0, 2\pi),

so that :math:`\langle \phi(x), \phi(y) \rangle` is on average the Gaussian kernel
:math:`\exp(-\|x - y\|^2 / (2\, \text{bandwidth}^2))`. Inputs should have one scale, such as rows
that are standardised or ranked, which have norm 1 on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features.compiled import CompiledMap
from driftline.kernels import MAP, Kernel, helper, kernel
from driftline.parts import check_number, check_whole

__all__ = ["Fourier"]

#: cos(2 pi t) as a polynomial in the square of t, for t from -1/2 to 1/2: interpolated at the
#: points of Chebyshev, to an error of 1e-14.
COSINE = (
    0.9999999999999956,
    -19.73920880217477,
    64.93939402210758,
    -85.45681717667905,
    60.24464056710631,
    -26.426244477557333,
    7.903422225546089,
    -1.713736067712307,
    0.27973246574401855,
    -0.03197288513183594,
)

#: Larger cells are refused: their angles, modulo whole turns, have no correct digits left.
LARGEST = 1e12

#: How many frequencies there are at most, for all features: 1 GiB of them.
MOST = 2**27


@helper
def cosines(turns, factor, out):
    """Write a multiple of the cosines of angles, in turns."""
    for i in range(turns.size):
        t = turns[i] - math.floor(turns[i])  # exact, from 0 to 1
        t = t - 1.0 if t > 0.5 else t
        u = t * t
        value = COSINE[9]
        value = value * u + COSINE[8]
        value = value * u + COSINE[7]
        value = value * u + COSINE[6]
        value = value * u + COSINE[5]
        value = value * u + COSINE[4]
        value = value * u + COSINE[3]
        value = value * u + COSINE[2]
        value = value * u + COSINE[1]
        value = value * u + COSINE[0]
        out[i] = factor * value


@helper
def add_turns(x, frequencies, out):
    """Add the angle of each cell, in the order of the features, so that batches do not matter."""
    for j in range(x.size):
        cell, own = x[j], frequencies[j]
        for i in range(out.size):
            out[i] += cell * own[i]


@kernel(MAP)
def fourier(inputs, constants, state, room, learning, out):
    """Write the cosines of rows; nothing is learned."""
    rows, features = inputs.shape
    count = out.shape[1]
    phases = constants[:count]
    frequencies = constants[count:].reshape(features, count)
    factor = math.sqrt(2.0 / count)
    for t in range(rows):
        x = inputs[t]
        for j in range(features):
            if not abs(x[j]) < LARGEST:
                return t
        for i in range(count):
            room[i] = phases[i]
        add_turns(x, frequencies, room)
        cosines(room, factor, out[t])
    return rows


@dataclass(frozen=True)
class Fourier(CompiledMap):
    """Random Fourier features of a given number and bandwidth, drawn from a seed.

    A new feature gets frequencies of its own, and all others keep theirs: rows in which it is 0 are
    mapped as before. Cells of 1e12 or more are refused: scale them first.

    >>> mapped = Fourier(500, bandwidth=0.5).transform(np.array([[0.0, 0.0], [0.3, 0.4]]))
    >>> (mapped @ mapped.T).round(1)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    count: int = 500
    bandwidth: float = 1.0
    seed: int = 0

    kernel: ClassVar[Kernel] = fourier
    most_norm = math.sqrt(2.0)
    largest_cell = LARGEST

    def __post_init__(self) -> None:
        """Refuse numbers that are not positive."""
        check_whole("the number of Fourier features", self.count, 1, 100_000)
        check_whole("a seed", self.seed, 0, 2**63 - 1)
        check_number("a bandwidth", self.bandwidth, 1e-9, 1e9)

    def check_features(self, features: int) -> None:
        """Refuse so many features that their frequencies would not fit in memory."""
        if self.count * features > MOST:
            raise InputError(
                f"{self.count} Fourier features of {features} features have "
                f"{self.count * features} frequencies, and {MOST} is the largest number: expected "
                "fewer of either"
            )

    def width(self, features: int) -> int:
        """Count the cosines."""
        return self.count

    def constants(self, features: int) -> np.ndarray:
        """Return phases and frequencies in turns, those of each feature from a seed of its own."""
        phases = _generator(self.seed, 0).random(self.count)
        rows = [_generator(self.seed, 1 + j).standard_normal(self.count) for j in range(features)]
        return np.concatenate([phases, np.ravel(rows) / (2.0 * math.pi * self.bandwidth)])

    def room(self, features: int) -> int:
        """Return room for the angles of one row."""
        return self.count


def _generator(seed: int, branch: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(branch,)))
