"""Sequences as users give them: arrays, sparse matrices, or features by name."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils.validation import check_array

from driftline.errors import InputError
from driftline.inputs import check_sparse
from driftline.typing import Inputs

__all__ = ["Positions", "checked_positions"]


@dataclass(frozen=True)
class Positions:
    """Sequences as learners take them, how many there are, and how many features they have."""

    inputs: Any
    count: int
    features: int

    def __len__(self) -> int:
        """Return how many sequences there are."""
        return self.count


def checked_positions(X: Inputs, columns: int) -> Positions:
    """Return sequences of arrays, of sparse matrices, or of dicts, which are hashed to columns."""
    sequences = list(X)
    if not sequences:
        raise InputError("expected 1 sequence or more, but there is none")
    if any(_named(sequence) for sequence in sequences):
        return _hashed(sequences, columns)
    if hasattr(sequences[0], "tocsr"):
        arrays = [_sparse(x, t) for t, x in enumerate(sequences)]
    else:
        arrays = [check_array(x, dtype=np.float64, input_name=f"X[{t}]") for t, x in enumerate(X)]
    expected = arrays[0].shape[1]
    for t, array in enumerate(arrays):
        if array.shape[1] != expected:
            raise InputError(
                f"sequence {t} has {array.shape[1]} features, but sequence 0 has {expected}"
            )
    return Positions(arrays, len(arrays), expected)


def _sparse(x: Any, t: int) -> Any:
    if not hasattr(x, "tocsr"):
        raise InputError(f"sequence {t} is not sparse, but sequence 0 is")
    check_sparse(x)
    return check_array(x, accept_sparse="csr", dtype=np.float64, input_name=f"X[{t}]")


def _named(sequence: Any) -> bool:
    """Say whether the first position of a sequence has features by name."""
    return (
        isinstance(sequence, (list, tuple)) and bool(sequence) and isinstance(sequence[0], Mapping)
    )


def _hashed(sequences: list[Any], columns: int) -> Positions:
    """Return all positions as one sparse matrix, and where sequences start."""
    if type(columns) is not int or not 1 <= columns < 2**31:
        raise InputError(f"columns must be a whole number from 1 to 2^31, not {columns!r}")
    for t, sequence in enumerate(sequences):
        good = isinstance(sequence, (list, tuple)) and len(sequence) > 0
        if not good or not all(isinstance(position, Mapping) for position in sequence):
            raise InputError(
                f"sequence {t} must be a list with a dict of features for each of its positions"
            )
    positions = list(itertools.chain.from_iterable(sequences))
    try:
        made = FeatureHasher(columns).transform(positions)
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"features are named by strings, and are numbers, True or strings: {error}"
        ) from error
    if not np.isfinite(made.data).all():
        raise InputError("features must be finite numbers, but one is not")
    starts = np.cumsum([0, *map(len, sequences)])
    return Positions((made, starts), len(sequences), columns)
