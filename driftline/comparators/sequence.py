"""Different weights for every round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["Sequence"]


class Sequence:
    """Any weights U_1, U_2, ..., one for each round.

    Parameters
    ----------
    weights
        An array (rounds x scores x features), or anything that can be iterated over and yields
        one array a round. An iterator is used up by one pass over a stream; only the weights of
        the current round are in memory.

    Examples
    --------
    >>> turning = Sequence(np.array([[[np.cos(a), np.sin(a)]]])[0] for a in np.linspace(0, 1, 5))
    >>> [round(float(weights[0, 1]), 2) for weights, _ in turning.pieces(0, 5)]
    [0.0, 0.25, 0.48, 0.68, 0.84]
    """

    def __init__(self, weights: Iterable[npt.ArrayLike]):
        self._given = weights
        try:
            self._left: Iterator[npt.ArrayLike] = iter(weights)
        except TypeError:
            raise InputError(
                f"expected weights one after the other, but got {weights!r:.80}"
            ) from None
        self._next = 0

    def __repr__(self) -> str:
        """Name what was given."""
        return f"Sequence({type(self._given).__name__})"

    @property
    def path_length(self) -> float:
        """The sum of the distances between successive weights; an iterator does not know it."""
        if iter(self._given) is self._given:
            raise InputError("an iterator has a path length only once a stream has used it up")
        total, previous = 0.0, None
        for given in self._given:
            weights = np.asarray(given, dtype=np.float64)
            total += 0.0 if previous is None else float(np.linalg.norm(weights - previous))
            previous = weights
        return total

    def pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the weights of rounds ``start`` to ``stop``, each with the round it ends before."""
        if start != self._next:
            if iter(self._given) is self._given:
                raise InputError(
                    f"the comparator is an iterator that has come to round {self._next}; it "
                    f"cannot go to round {start}: give an array, or a new iterator"
                )
            self._left, self._next = islice(iter(self._given), start, None), start
        for t in range(start, stop):
            try:
                weights = np.array(next(self._left), dtype=np.float64, order="C")
            except StopIteration:
                raise InputError(
                    f"the comparator ends after {t} rounds, before the stream"
                ) from None
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"the comparator's weights in round {t} must be a matrix of numbers: {error}"
                ) from error
            self._next = t + 1
            if weights.ndim != 2 or not np.isfinite(weights).all():
                raise InputError(
                    f"the comparator's weights in round {t} must be a finite matrix, but have "
                    f"shape {weights.shape}"
                )
            yield weights, t + 1
