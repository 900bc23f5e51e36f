r"""Products of all pairs of features, and their squares.

Rows are standardised first (:class:`~driftline.features.Standardise`, without a constant). Then

.. math:: \phi_{ii} = z_i^2, \qquad \phi_{ij} = \sqrt 2\, z_i z_j \quad (i < j), \qquad
   \|\phi(z)\| = \|z\|^2 \le 9,

so that :math:`\langle \phi(z), \phi(y) \rangle = \langle z, y \rangle^2`: a learner that is linear
in them is quadratic in rows. Linear terms are not among them: ``Union(Standardise(), Quadratic())``
has both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.errors import InputError
from driftline.features.chain import Chain
from driftline.features.compiled import CompiledMap
from driftline.features.standardiser import Standardise
from driftline.kernels import MAP, Kernel, kernel

__all__ = ["Products", "Quadratic"]

#: Larger cells and more features are refused: 200 features have 20100 products.
LARGEST, MOST = 1e12, 200


@kernel(MAP)
def products(inputs, constants, state, room, learning, out):
    """Write the products of rows; nothing is learned."""
    rows, features = inputs.shape
    factor = math.sqrt(2.0)
    for t in range(rows):
        x, place = inputs[t], 0
        for j in range(features):
            if not abs(x[j]) < LARGEST:
                return t
        for j in range(features):
            twice = factor * x[j]
            for i in range(j):
                out[t, place + i] = twice * x[i]
            out[t, place + j] = x[j] * x[j]
            place += j + 1
    return rows


@dataclass(frozen=True)
class Products(CompiledMap):
    """All products of two features, not scaled: rows should have one scale.

    A new feature's products come after the others.

    >>> import numpy as np
    >>> Products().transform(np.array([[3.0, 1.0]])).round(2).tolist()
    [[9.0, 4.24, 1.0]]
    """

    kernel: ClassVar[Kernel] = products
    largest_cell = LARGEST

    def width(self, features: int) -> int:
        """Count pairs and squares."""
        return features * (features + 1) // 2

    def check_features(self, features: int) -> None:
        """Refuse too many features."""
        if features > MOST:
            raise InputError(
                f"{features} features have {self.width(features)} products, and {MOST} features "
                "are the most: choose some, or take Fourier features of them"
            )


@dataclass(frozen=True)
class Quadratic(Chain):
    """All products of two standardised features, and their squares; up to 200 features.

    The products of a new feature come after the others, which shrink by the ratio of features.

    >>> import numpy as np
    >>> rows = np.array([[1.0, 5.0], [3.0, 5.0], [1.0, 9.0], [3.0, 9.0]])
    >>> Quadratic().transform(rows).round(2)[-1].tolist()
    [0.64, 0.91, 0.64]
    """

    _made_from = ()
    maps = (Standardise(constant=False), Products())
    most_norm = 9.0
