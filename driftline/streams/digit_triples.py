"""The digit stream of the paper: three digits at a time, and new ones after every flip."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from driftline.errors import InputError
from driftline.streams.base import Stream, segment_starts
from driftline.streams.idx import read_mnist
from driftline.tasks import Multiclass

__all__ = ["DigitTriples"]


class DigitTriples(Stream):
    """Images of three digits, which are the labels 0, 1 and 2 in random order.

    A flip draws three new digits. Within a segment, images of its digits are drawn
    uniformly with replacement, and scaled to norm 1.

    Parameters
    ----------
    source
        ``"digits"``, the 8x8 images that come with scikit-learn, or ``"mnist"``.
    folder
        The folder of the four MNIST files; by default ``mnist`` in the folder that the environment
        variable ``DRIFTLINE_DATA`` names.

    Examples
    --------
    >>> stream = DigitTriples(rounds=90, flips=2, seed=0)
    >>> stream.inputs.shape, stream.digits.shape
    ((90, 64), (3, 3))
    """

    def __init__(
        self,
        rounds: int = 10_000,
        flips: int = 10,
        seed: int | None = 0,
        source: Literal["digits", "mnist"] = "digits",
        folder: str | Path | None = None,
    ):
        if source not in ("digits", "mnist"):
            raise InputError(f"source must be 'digits' or 'mnist', but is {source!r}")
        images, names = _digits() if source == "digits" else read_mnist(folder)
        generator = np.random.default_rng(seed)
        self.task = Multiclass(3)
        self.starts = segment_starts(rounds, flips)
        self.digits = np.array([generator.permutation(10)[:3] for _ in self.starts])
        picked = np.empty(rounds, dtype=np.int64)
        self.labels = np.empty(rounds, dtype=np.int64)
        for digits, start, stop in zip(
            self.digits, self.starts, [*self.starts[1:], rounds], strict=True
        ):
            label_of = np.full(10, -1)
            label_of[digits] = [0, 1, 2]
            candidates = np.flatnonzero(label_of[names] >= 0)
            picked[start:stop] = generator.choice(candidates, stop - start)
            self.labels[start:stop] = label_of[names[picked[start:stop]]]
        self.inputs = images[picked].astype(np.float64)
        norms = np.linalg.norm(self.inputs, axis=1, keepdims=True)
        self.inputs /= np.where(norms > 0.0, norms, 1.0)


@lru_cache(maxsize=1)
def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    images, names = load_digits(return_X_y=True)
    return images, names
