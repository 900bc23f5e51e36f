"""A boundary that turns slowly."""

from __future__ import annotations

import math

import numpy as np

from driftline.comparators import Piecewise
from driftline.errors import InputError
from driftline.streams.base import Stream, check_count, unit_circle
from driftline.tasks import Binary

__all__ = ["Rotation"]


class Rotation(Stream):
    """Points on the unit circle, labelled by a unit vector that turns evenly.

    The comparator moves in every round, by a path of total length close to
    ``2 pi turns``.

    >>> stream = Rotation(rounds=1000, turns=0.5, seed=0)
    >>> round(stream.comparator.path_length, 2)
    3.14
    """

    def __init__(self, rounds: int = 10_000, turns: float = 1.0, seed: int | None = 0):
        rounds = check_count(rounds, 1, "rounds")
        if not math.isfinite(turns):
            raise InputError(f"turns must be a finite number, but is {turns}")
        angle = 2.0 * math.pi * turns * np.arange(rounds) / rounds
        normals = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        self.task = Binary()
        self.starts = np.zeros(1, dtype=np.int64)
        self.inputs = unit_circle(rounds, np.random.default_rng(seed))
        self.labels = np.where((self.inputs * normals).sum(axis=1) >= 0.0, 1, -1)
        self.comparator = Piecewise(np.arange(rounds), normals[:, None, :])
