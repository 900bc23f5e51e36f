"""Read MNIST from its IDX files."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from driftline.errors import InputError
from driftline.readers.lines import find_file, read_bytes

__all__ = ["read_idx", "read_mnist"]

PAIRS = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)


def read_mnist(folder: str | Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return all images as rows of pixels, training images first, and their digits."""
    if folder is None:
        base = os.environ.get("DRIFTLINE_DATA")
        if not base:
            raise InputError(
                "no folder with MNIST is known: set DRIFTLINE_DATA to a folder that has the "
                "four IDX files in mnist/, or give the folder itself"
            )
        folder = Path(base) / "mnist"
    return _read_pairs(Path(folder).expanduser().resolve())


@lru_cache(maxsize=1)
def _read_pairs(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    images, labels = [], []
    for image_name, label_name in PAIRS:
        pixels, digits = (
            read_idx(find_file(folder, image_name)),
            read_idx(find_file(folder, label_name)),
        )
        if pixels.ndim != 3 or digits.ndim != 1 or len(pixels) != len(digits):
            raise InputError(
                f"{folder / image_name} and {label_name} do not belong together: their shapes "
                f"are {pixels.shape} and {digits.shape}"
            )
        if digits.max(initial=0) > 9:
            raise InputError(f"{folder / label_name} has a label {digits.max()}, not a digit")
        images.append(pixels.reshape(len(pixels), -1))
        labels.append(digits)
    return np.concatenate(images), np.concatenate(labels).astype(np.int64)


def read_idx(path: str | Path) -> np.ndarray:
    """Return the array of bytes in an IDX file, plain or compressed by gzip."""
    content = read_bytes(path)
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise InputError(f"{path} is no IDX file of bytes: it begins with {content[:4]!r}")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise InputError(f"{path} is truncated: its header has {len(content)} of {start} bytes")
    shape = tuple(int(n) for n in np.frombuffer(content[4:start], dtype=">u4"))
    expected = start + math.prod(shape)
    if len(content) != expected:
        raise InputError(
            f"{path} is truncated or damaged: {shape} needs {expected} bytes, but it has "
            f"{len(content)}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
