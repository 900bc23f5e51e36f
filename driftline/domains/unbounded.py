"""All of space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.domains.base import Domain

__all__ = ["Unbounded"]


@dataclass(frozen=True)
class Unbounded(Domain):
    """Any weights. The worst-case bounds need a diameter and do not apply."""

    diameter: ClassVar[float] = math.inf
    radius: ClassVar[float] = math.inf

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights unchanged."""
        return weights
