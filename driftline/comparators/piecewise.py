r"""Weights that stay the same between change points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["Piecewise"]


class Piecewise:
    """Weights ``weights[i]`` from round ``starts[i]`` on; the first round is 0.

    >>> turn = Piecewise([0, 50], [[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> turn.at(49), turn.at(50)
    (array([[1., 0.]]), array([[0., 1.]]))
    >>> round(turn.path_length, 4)
    1.4142
    """

    def __init__(self, starts: npt.ArrayLike, weights: npt.ArrayLike | Sequence[npt.ArrayLike]):
        try:
            self.starts = np.asarray(starts, dtype=np.int64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"change points must be whole numbers: {error}") from error
        try:
            self.weights = np.asarray(weights, dtype=np.float64, order="C")
        except (TypeError, ValueError) as error:
            raise InputError(f"a comparator's weights must be numbers: {error}") from error
        if self.starts.ndim != 1 or not self.starts.size or self.starts[0] != 0:
            raise InputError("change points must be a vector that starts with 0")
        if (np.diff(self.starts) <= 0).any():
            raise InputError("change points must increase")
        if self.weights.ndim != 3 or len(self.weights) != len(self.starts):
            raise InputError(
                f"{len(self.starts)} segments need as many weight matrices, but the weights "
                f"have shape {self.weights.shape}"
            )
        if not np.isfinite(self.weights).all():
            raise InputError("a comparator's weights must be finite, but one is not")
        self._matrices = list(self.weights)

    def __repr__(self) -> str:
        """Name the size."""
        return f"Piecewise({len(self.starts)} segments of shape {self.weights.shape[1:]})"

    def at(self, t: int) -> np.ndarray:
        """Return the weights of round ``t``, counted from 0."""
        segment = np.searchsorted(self.starts, t, side="right") - 1
        weights: np.ndarray = self.weights[segment]
        return weights

    def pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the weights of rounds ``start`` to ``stop``, each with the round it ends before."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        ends = np.r_[self.starts[1:], np.iinfo(np.int64).max]
        for segment in range(first, len(self.starts)):
            if self.starts[segment] >= stop:
                break
            yield self._matrices[segment], min(int(ends[segment]), stop)

    @property
    def path_length(self) -> float:
        """The sum of the distances between successive weights."""
        moves = np.diff(self.weights, axis=0)
        return float(np.sqrt((moves**2).sum(axis=(1, 2))).sum())

    @property
    def largest_norm(self) -> float:
        """The largest Frobenius norm of a segment's weights."""
        return float(np.sqrt((self.weights**2).sum(axis=(1, 2)).max()))

    def scaled(self, factor: float) -> Piecewise:
        """Return the comparator with all weights multiplied."""
        return Piecewise(self.starts, factor * self.weights)
