"""The streams of the race: rows that are standardised once, and labels 0 to K - 1."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftline.features import Standardiser
from driftline.readers import read_arff
from driftline.streams import DigitTriples, LabelFlips, Rotation

ROUNDS = 10_000
NOISE = 0.1


class Rows(NamedTuple):
    """What everybody plays: standardised inputs, labels, and the number of classes.

    The last input is a small constant. ``raw`` has the inputs before they were standardised, for
    who does the same by itself.
    """

    inputs: np.ndarray
    labels: np.ndarray
    classes: int
    raw: np.ndarray

    def first(self, count: int) -> Rows:
        """Return the first rows."""
        return Rows(self.inputs[:count], self.labels[:count], self.classes, self.raw[:count])

    def checksum(self) -> int:
        """Return a number that changes with any row or label."""
        return zlib.crc32(self.labels.tobytes(), zlib.crc32(self.inputs.tobytes()))


def _synthetic(flips: int) -> Callable[[int], tuple[Any, Any, int]]:
    def make(seed: int) -> tuple[Any, Any, int]:
        stream = LabelFlips(rounds=ROUNDS, flips=flips, seed=seed, form="matrix")
        return stream.inputs, stream.labels, 2

    return make


def _digits(flips: int, source: Any = "digits") -> Callable[[int], tuple[Any, Any, int]]:
    def make(seed: int) -> tuple[Any, Any, int]:
        stream = DigitTriples(rounds=ROUNDS, flips=flips, seed=seed, source=source)
        return stream.inputs, stream.labels, 3

    return make


def _rotation(seed: int) -> tuple[Any, Any, int]:
    stream = Rotation(rounds=ROUNDS, seed=seed)
    return stream.inputs, (stream.labels + 1) // 2, 2


def _electricity(seed: int) -> tuple[Any, Any, int]:
    path = Path(os.environ["DRIFTLINE_DATA"]) / "electricity" / "elecNormNew.arff.gz"
    values = read_arff(path).values
    return values[:, :-1], values[:, -1].astype(np.int64), 2


def _noisy(make: Callable[[int], tuple[Any, Any, int]]) -> Callable[[int], tuple[Any, Any, int]]:
    """Replace a share of the labels by ones drawn uniformly, the true one among them."""

    def noisy(seed: int) -> tuple[Any, Any, int]:
        inputs, labels, classes = make(seed)
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(10,)))
        replaced = generator.random(len(labels)) < NOISE
        drawn = generator.integers(0, classes, len(labels))
        return inputs, np.where(replaced, drawn, labels), classes

    return noisy


FREE = {
    **{f"synthetic {flips}": _synthetic(flips) for flips in (1, 10, 100)},
    "synthetic 10 noisy": _noisy(_synthetic(10)),
    **{f"digits {flips}": _digits(flips) for flips in (1, 10, 100)},
    "digits 10 noisy": _noisy(_digits(10)),
    "rotation": _rotation,
}
WITH_DATA = {"mnist 10": _digits(10, "mnist"), "electricity": _electricity}
STREAMS = FREE | WITH_DATA

#: Streams without chance in them: one seed says it all.
FIXED = ("electricity",)

#: Streams of so many features that Python loops over them take long.
WIDE = ("mnist 10",)


def available() -> list[str]:
    """Return the names of the streams whose data are here."""
    folders = {"mnist 10": "mnist", "electricity": "electricity"}
    root = os.environ.get("DRIFTLINE_DATA")
    return [*FREE, *(n for n in WITH_DATA if root and (Path(root) / folders[n]).is_dir())]


@lru_cache(maxsize=2)
def rows_of(name: str, seed: int) -> Rows:
    """Return the rows of a stream, standardised as they come."""
    inputs, labels, classes = STREAMS[name](seed)
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    inputs = np.ascontiguousarray(inputs, dtype=np.float64)
    return Rows(Standardiser().transform(inputs), labels, classes, inputs)
