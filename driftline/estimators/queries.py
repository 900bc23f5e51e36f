"""Rows that belong to queries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError

__all__ = ["starts_of"]


def starts_of(
    count: int, qid: npt.ArrayLike | None = None, group: npt.ArrayLike | None = None
) -> np.ndarray:
    """Return the rows at which queries start, and the number of rows at the end.

    From an id for every row, or from the sizes of the queries; without either all rows are one.

    >>> starts_of(5, qid=[7, 7, 2, 2, 2]), starts_of(5, group=[2, 3])
    (array([0, 2, 5]), array([0, 2, 5]))
    """
    if qid is not None and group is not None:
        raise InputError("queries are given by `qid` or by `group`, not by both")
    if group is not None:
        sizes = np.asarray(group)
        good = sizes.ndim == 1 and sizes.dtype.kind in "iu" and (sizes > 0).all()
        if not good or sizes.sum() != count:
            raise InputError(
                f"the sizes of queries must be whole numbers above 0 that add up to {count}, the "
                f"number of rows, but are {sizes.tolist()}"
            )
        return np.r_[0, np.cumsum(sizes)]
    if qid is None:
        return np.array([0, count])
    ids = np.asarray(qid)
    if ids.shape != (count,):
        raise InputError(
            f"expected one qid for each of {count} rows, but their shape is {ids.shape}"
        )
    starts = np.r_[0, np.flatnonzero(ids[1:] != ids[:-1]) + 1, count]
    if len(np.unique(ids)) != len(starts) - 1:
        raise InputError("rows of one query must stand together: sort them by qid first")
    return starts
