r"""Unchanged rows.

.. math:: \phi(x) = x

For members that do not depend on the scale of features, such as trees, in committees that scale
rows for all others: a scaling that changes would invalidate what they have learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.features.compiled import CompiledMap
from driftline.kernels import MAP, Kernel, kernel

__all__ = ["Raw"]


@kernel(MAP)
def raw(inputs, constants, state, room, learning, out):
    """Copy rows; nothing is learned."""
    rows, features = inputs.shape
    for t in range(rows):
        for j in range(features):
            if not abs(inputs[t, j]) < math.inf:
                return t
            out[t, j] = inputs[t, j]
    return rows


@dataclass(frozen=True)
class Raw(CompiledMap):
    """Dense rows, unchanged, of any length.

    >>> import numpy as np
    >>> Raw().transform(np.array([[3.0, 400.0]])).tolist()
    [[3.0, 400.0]]
    """

    kernel: ClassVar[Kernel] = raw
    placewise = True
