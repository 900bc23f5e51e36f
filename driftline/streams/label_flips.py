"""The synthetic stream of the paper: a half-plane whose sides change labels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from driftline.comparators import Piecewise
from driftline.errors import InputError
from driftline.streams.base import Stream, segment_starts, unit_circle
from driftline.tasks import Binary, Multiclass

__all__ = ["LabelFlips"]


class LabelFlips(Stream):
    """Points on the unit circle, labelled by the side of a line; at a flip the sides swap.

    Labels are -1 and +1 with one weight vector (``form="vector"``, as in the paper), or
    classes 0 and 1 with one weight vector each (``form="matrix"``). The comparator is the
    unit normal of the line, or a pair of opposite vectors whose joint norm is 1.

    >>> stream = LabelFlips(rounds=100, flips=3, seed=0)
    >>> stream.starts, round(stream.comparator.path_length, 6)
    (array([ 0, 25, 50, 75]), 6.0)
    """

    def __init__(
        self,
        rounds: int = 10_000,
        flips: int = 10,
        seed: int | None = 0,
        form: Literal["vector", "matrix"] = "vector",
    ):
        if form not in ("vector", "matrix"):
            raise InputError(f"form must be 'vector' or 'matrix', but is {form!r}")
        self.starts = segment_starts(rounds, flips)
        self.inputs = unit_circle(rounds, np.random.default_rng(seed))
        normal = np.array([1.0, 1.0]) / np.sqrt(2.0)
        signs = (-1.0) ** np.arange(flips + 1)
        segment = np.searchsorted(self.starts, np.arange(rounds), side="right") - 1
        sides = np.where(self.inputs @ normal >= 0.0, 1, -1) * signs[segment].astype(np.int64)
        if form == "vector":
            self.task = Binary()
            self.labels = sides
            self.comparator = Piecewise(self.starts, signs[:, None, None] * normal)
        else:
            self.task = Multiclass(2)
            self.labels = (sides + 1) // 2
            pair = np.stack([-normal, normal]) / np.sqrt(2.0)
            self.comparator = Piecewise(self.starts, signs[:, None, None] * pair)
