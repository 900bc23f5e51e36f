"""Read handwritten words, letter by letter, from the MATLAB file of the OCR data set.

The file holds one variable ``dataset`` with an entry per word: its ``fold``, the ``pixels`` of
each letter, 16 rows of 8 that are 0 or 1, and the ``word`` as letter codes, 0 for a to 25 for z.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftline.errors import InputError

__all__ = ["Words", "read_ocr"]

FIELDS = ("fold", "pixels", "word")
SHAPE = (16, 8)
COMPRESSED = 15


class Words(NamedTuple):
    """Letters, grouped by word.

    Attributes
    ----------
    pixels : array of float64
        One row of 128 zeros and ones per letter, the image's rows one after another.
    letters : array of int64
        One code per letter, 0 for a to 25 for z.
    starts : array of int64
        The letters of word w are ``starts[w]:starts[w + 1]``.
    folds : array of int64
        One fold number per word.
    """

    pixels: np.ndarray
    letters: np.ndarray
    starts: np.ndarray
    folds: np.ndarray


def read_ocr(path: str | Path) -> Words:
    """Return all words of the OCR data set from its MATLAB file, version 5."""
    entries = _load(path)
    images: list[np.ndarray] = []
    letters: list[np.ndarray] = []
    starts, folds = [0], []
    for number, entry in enumerate(entries, 1):
        where = f"{path}, word {number} of {len(entries)}"
        fold, cells, codes = (entry[name] for name in FIELDS)
        if not _is_whole(fold) or fold.size != 1:
            raise InputError(f"{where}: fold must be one whole number, but is {_look(fold)}")
        if not _is_whole(codes) or codes.min(initial=0) < 0 or codes.max(initial=0) > 25:
            raise InputError(f"{where}: word must be codes from 0 to 25, but is {_look(codes)}")
        if not isinstance(cells, np.ndarray) or cells.dtype != object:
            raise InputError(f"{where}: pixels must be a cell per letter, but is {_look(cells)}")
        if cells.size != codes.size or codes.size == 0:
            raise InputError(
                f"{where}: expected as many images as letters, at least one, but saw "
                f"{cells.size} images and {codes.size} letters"
            )
        for image in cells.flat:
            if not _is_whole(image) or image.shape != SHAPE:
                raise InputError(f"{where}: an image must be 16 by 8, but is {_look(image)}")
        images += list(cells.flat)
        letters.append(codes.ravel())
        starts.append(len(images))
        folds.append(int(fold.flat[0]))
    pixels = np.stack(images).reshape(len(images), -1).astype(np.float64)
    bad = np.flatnonzero(((pixels != 0.0) & (pixels != 1.0)).any(axis=1))
    if bad.size:
        number = int(np.searchsorted(starts, bad[0], side="right"))
        raise InputError(
            f"{path}, word {number} of {len(entries)}: pixels must be 0 or 1, but they go from "
            f"{pixels[bad[0]].min():g} to {pixels[bad[0]].max():g}"
        )
    return Words(
        pixels,
        np.concatenate(letters).astype(np.int64),
        np.array(starts, dtype=np.int64),
        np.array(folds, dtype=np.int64),
    )


def _load(path: str | Path) -> list[np.void]:
    """Return one record per word; ``dataset`` is a cell array of structs, or a struct array."""
    from scipy.io import loadmat

    content = Path(path).read_bytes()
    try:
        _check_parts(content)
        dataset = loadmat(BytesIO(content), variable_names=["dataset"]).get("dataset")
    except Exception as error:  # SciPy raises errors of many classes for a damaged file
        raise InputError(f"{path} is no MATLAB file of version 5, or damaged: {error}") from error
    if not isinstance(dataset, np.ndarray) or dataset.size == 0:
        raise InputError(f"{path} must have a variable 'dataset' with an entry per word")
    entries = []
    for number, entry in enumerate(dataset.flat, 1):
        if isinstance(entry, np.ndarray) and entry.size == 1:
            entry = entry.flat[0]
        if not isinstance(entry, np.void) or not set(FIELDS) <= set(entry.dtype.names or ()):
            raise InputError(
                f"{path}, word {number} of {dataset.size}: expected a struct with fold, pixels "
                f"and word, but saw {_look(entry)}"
            )
        entries.append(entry)
    return entries


def _check_parts(content: bytes) -> None:
    """Raise an error where a part is cut off or its checksum is wrong: SciPy may crash on it."""
    order, start = "<" if content[126:128] == b"IM" else ">", 128
    while start < len(content):
        kind, size = struct.unpack_from(f"{order}II", content, start)
        part = content[start + 8 : start + 8 + size]
        if len(part) < size:
            raise ValueError(f"a part of {size} bytes ends after {len(part)}")
        if kind == COMPRESSED:
            zlib.decompress(part)
        start += 8 + size


def _is_whole(array: np.ndarray) -> bool:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        return False
    return array.dtype.kind != "f" or bool((np.isfinite(array) & (array == np.rint(array))).all())


def _look(value: object) -> str:
    if isinstance(value, np.void):
        return f"a struct with {value.dtype.names}"
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    shape = " by ".join(map(str, value.shape))
    return f"an array of {value.dtype}, {shape}" + (f": {value}" if value.size < 30 else "")
