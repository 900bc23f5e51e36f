"""Numbers as users give them, copied into arrays that compiled code can trust."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["real_numbers", "whole_numbers"]

#: The names of labels in messages.
LABELS = ("labels", "a label", "tags")


def real_numbers(values: npt.ArrayLike, what: str) -> np.ndarray:
    """Return a copy of ``values`` in float64, refusing what is not an array of numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} must be an array of numbers: {error}") from error


def whole_numbers(values: npt.ArrayLike, what: str) -> np.ndarray:
    """Return a copy of ``values`` in int64, refusing anything that is not a whole number.

    It is always a contiguous copy, which nobody else can write to: compiled code reads exactly what
    is checked afterwards.
    """
    if np.ma.is_masked(values):
        raise InputError(f"{what} have masked entries")
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{what} do not form an array: {error}") from error
    if array.dtype.kind in "iub":
        return np.array(array, dtype=np.int64, order="C")
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            rounded = array.astype(np.int64)
        if np.array_equal(rounded, array):
            return rounded
        bad = array[rounded != array].flat[0]
        raise InputError(f"{what} must be whole numbers, but one is {bad}")
    words = [value for value in array.flat if isinstance(value, str)]
    if words and what in LABELS:
        raise InputError(
            f"{what} must be whole numbers, but one is {str(words[0])!r:.40}: estimators such as "
            "dl.DriftClassifier learn from labels that are words"
        )
    raise InputError(f"{what} must be whole numbers, but their type is {array.dtype}")
