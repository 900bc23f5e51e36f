"""Sets of items that are sparse rows, and share one weight vector."""

from __future__ import annotations

import numpy as np

from driftline.inputs.sparse import SparseRows
from driftline.inputs.sparse_sequences import SparseSequences

__all__ = ["WIDE", "SparseItems"]

#: CSR matrices of items with more columns than these stay sparse. Narrower ones are made dense, so
#: that they can be centred, and learn better: grades and counts of documents seldom are 0 on
#: average.
WIDE = 1024


class SparseItems(SparseSequences):
    """One CSR matrix (items x features) a round; an item's score is its entries times the weights.

    To the loop items are positions with a single tag, and without transitions.

    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows(csr_array(np.eye(3)[:2]))
    >>> SparseItems(rows, np.array([0, 2])).scores(np.array([[5.0, 6.0, 7.0]]), False, 0, False)
    array([5., 6.])
    """

    group, members = "set", "items"

    def __init__(self, items: SparseRows, places: np.ndarray):
        super().__init__(items, places, tags=1, transitions=False)
