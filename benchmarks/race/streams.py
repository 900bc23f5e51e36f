"""The streams of the race: rows, raw and standardised once, and labels 0 to K - 1."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.race.river_streams import GENERATORS, TABLES
from driftline.features import Standardiser
from driftline.readers import read_arff
from driftline.streams import DigitTriples, LabelFlips, Rotation

ROUNDS = 10_000
NOISE = 0.1

#: Rows of Covertype, of the 100 000 that its file has.
COVERTYPE_ROWS = 20_000

#: Seeds on which settings may be chosen; those that are reported begin at FIRST_SEED.
CHOOSING_SEEDS = range(5)
FIRST_SEED = 100


class Rows(NamedTuple):
    """What everybody plays: standardised inputs, labels, and the number of classes.

    The last input is a small constant. ``raw`` has the inputs before they were standardised, for
    methods that need no scaling, and for those that scale by themselves.
    """

    inputs: np.ndarray
    labels: np.ndarray
    classes: int
    raw: np.ndarray

    def first(self, count: int) -> Rows:
        """Return the first rows."""
        return Rows(self.inputs[:count], self.labels[:count], self.classes, self.raw[:count])

    def checksum(self, raw: bool = False) -> int:
        """Return a number that changes with any label and any row, raw or standardised."""
        inputs = self.raw if raw else self.inputs
        return zlib.crc32(self.labels.tobytes(), zlib.crc32(inputs.tobytes()))


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


def _folder(name: str) -> Path:
    return Path(os.environ["DRIFTLINE_DATA"]) / name


def _electricity(seed: int) -> tuple[Any, Any, int]:
    values = read_arff(_folder("electricity") / "elecNormNew.arff.gz").values
    return values[:, :-1], values[:, -1].astype(np.int64), 2


def _covertype(seed: int) -> tuple[Any, Any, int]:
    with np.load(_folder("covertype") / "covertype.npz") as arrays:
        return arrays["X"][:COVERTYPE_ROWS], arrays["y"][:COVERTYPE_ROWS], 7


def _keystroke(seed: int) -> tuple[Any, Any, int]:
    folder = _folder("keystroke")
    inputs = np.loadtxt(folder / "keystroke.data.gz")
    return inputs, np.loadtxt(folder / "keystroke.labels.gz", dtype=np.int64), 4


def _noisy(make: Callable[[int], tuple[Any, Any, int]]) -> Callable[[int], tuple[Any, Any, int]]:
    """Replace a share of the labels by ones drawn uniformly, the true one among them."""

    def noisy(seed: int) -> tuple[Any, Any, int]:
        inputs, labels, classes = make(seed)
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(10,)))
        replaced = generator.random(len(labels)) < NOISE
        drawn = generator.integers(0, classes, len(labels))
        return inputs, np.where(replaced, drawn, labels), classes

    return noisy


MADE_HERE = {
    **{f"synthetic {flips}": _synthetic(flips) for flips in (1, 10, 100)},
    "synthetic 10 noisy": _noisy(_synthetic(10)),
    **{f"digits {flips}": _digits(flips) for flips in (1, 10, 100)},
    "digits 10 noisy": _noisy(_digits(10)),
    "rotation": _rotation,
    "mnist 10": _digits(10, "mnist"),
}
FROM_FILES = {"covertype": _covertype, "keystroke": _keystroke, "electricity": _electricity}
GROUPS = {
    "streams made here": MADE_HERE,
    "River's generators": GENERATORS,
    "data in their own order": TABLES | FROM_FILES,
}
STREAMS = {name: make for group in GROUPS.values() for name, make in group.items()}

#: Streams without chance in them: one seed says it all, and no seed is held out.
FIXED = tuple(TABLES | FROM_FILES)

#: Streams of so many features that Python loops over them take long.
WIDE = ("mnist 10",)

#: The folders of DRIFTLINE_DATA that streams are read from.
FOLDERS = {"mnist 10": "mnist"} | {name: name for name in FROM_FILES}


def available() -> list[str]:
    """Return the names of the streams whose data and generators are here."""
    root, river = os.environ.get("DRIFTLINE_DATA"), find_spec("river") is not None

    def here(name: str) -> bool:
        if name in FOLDERS:
            return root is not None and (Path(root) / FOLDERS[name]).is_dir()
        return river or name not in GENERATORS | TABLES

    return [name for name in STREAMS if here(name)]


@lru_cache(maxsize=2)
def rows_of(name: str, seed: int) -> Rows:
    """Return the rows of a stream, standardised as they come."""
    inputs, labels, classes = STREAMS[name](seed)
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    inputs = np.ascontiguousarray(inputs, dtype=np.float64)
    return Rows(Standardiser().transform(inputs), labels, classes, inputs)
