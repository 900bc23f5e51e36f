"""Traces of version 0.1.0: compressed ``.npz`` files without a seal, read but no longer written.

Such a file may have been made by anyone. An entry whose name, type or size no trace can have is
refused before it is unpacked.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from driftline.errors import InputError
from driftline.state.state import State
from driftline.typing import Json, Saved

__all__ = ["ORIGIN", "origin", "read"]

#: Arrays of the state before the first round, in traces up to the first sealed ones.
ORIGIN = ("origin", "state")

#: The most bytes that may be unpacked from any file; from a large file, this many times its size.
MOST_BYTES, MOST_TIMES = 1 << 28, 20

ARRAYS = "loss|risk|target_loss|eta|grad_sq|prediction|first_weights|gap|restarted|about"
NAME = re.compile(rf"((\d{{1,4}}\.)?({ARRAYS})|weights|member_risk|shares|scaling)\.npy")
DTYPES = ("float64", "float32", "int64", "bool")


def read(path: str | Path) -> Saved:
    """Return the content of a file as plain data and arrays, in the layout of current files."""
    size = Path(path).stat().st_size
    with zipfile.ZipFile(path) as file:
        entries = file.infolist()
        names = [entry.filename for entry in entries]
        odd = [name for name in names if not NAME.fullmatch(name) or names.count(name) > 1]
        if odd or "about.npy" not in names:
            raise InputError(f"these are not the arrays of a trace: {', '.join(odd or names)}")
        total = sum(entry.file_size for entry in entries)
        if total > max(MOST_BYTES, MOST_TIMES * size):
            raise InputError(f"{size} bytes would unpack to {total}, which is too much")
        arrays = {name.removesuffix(".npy"): _array(name, file.read(name)) for name in names}
    texts = {name: arrays.pop(name) for name in list(arrays) if name.endswith("about")}
    about = json.loads(str(texts["about"]))
    if "member_risk" not in arrays:
        return _member(about, arrays, ""), arrays
    count = about["members"]
    if not (isinstance(count, int) and 0 < count < len(texts)):
        raise InputError(f"there are {len(texts) - 1} members in the file, but it says {count}")
    members = [json.loads(str(texts[f"{j}.about"])) for j in range(count)]
    about["members"] = [_member(made, arrays, f"{j}.") for j, made in enumerate(members)]
    return about | {"kind": "CommitteeTrace"}, arrays


def _member(about: Json, arrays: dict[str, np.ndarray], start: str) -> Json:
    """Return the description of one learner's trace; its weights get their current name."""
    if f"{start}first_weights" in arrays:
        arrays[f"{start}origin"] = arrays.pop(f"{start}first_weights")
    return about | {"kind": "Trace", "transposed": False}


def origin(about: Json, arrays: Mapping[str, np.ndarray]) -> State | None:
    """Return the state before the first round, of which such traces have only the weights.

    The first sealed traces also have a vector, whose first number is the scale of the weights, and
    a generator, which is no longer used.
    """
    if "origin" not in arrays:
        return None
    weights, vector = arrays["origin"], arrays.get("state")
    if weights.ndim != 2 or weights.dtype.kind != "f" or not np.isfinite(weights).all():
        raise InputError(
            f"first weights must be rows of finite numbers, but are {weights.dtype} of shape "
            f"{weights.shape}"
        )
    scale = 1.0
    if vector is not None:
        if vector.dtype != np.float64 or vector.ndim != 1 or vector.size < 1:
            raise InputError(f"a state is a vector of numbers, not {vector.dtype}")
        scale = float(vector[0])
    with np.errstate(over="ignore", invalid="ignore"):
        rows = ((weights.T if about["transposed"] else weights) * scale).astype(weights.dtype)
    if not np.isfinite(rows).all():
        raise InputError("the state has a scale that makes first weights infinite")
    return State(weights=rows, rate_memory=None)


def _array(name: str, content: bytes) -> np.ndarray:
    """Return an array, if its header fits its content; a text under the names of texts."""
    file = io.BytesIO(content)
    if (version := np.lib.format.read_magic(file)) != (1, 0):
        raise InputError(f"{name} has a header of version {version}: expected (1, 0)")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    text = name.endswith("about.npy")
    if dtype.kind != "U" or shape != () if text else dtype.name not in DTYPES:
        raise InputError(f"{name} holds {dtype} in the shape {shape}: a trace has none such")
    left = len(content) - file.tell()
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != left:
        raise InputError(f"{name} says that its shape is {shape}, but has {left} bytes")
    flat = np.frombuffer(content, dtype=dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="))
