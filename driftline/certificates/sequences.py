r"""The best sequences of members in hindsight.

With :math:`C_{t,j}` the losses of member j added up over t rounds, and :math:`V^k_{t,j}` the least
loss of t rounds by a sequence that ends with j and has changed k times at most,

.. math:: V^k_{t,j} = C_{t,j} + \min_{s \le t} \Big( \min_i V^{k-1}_{s,i} - C_{s,j} \Big), \qquad
   V^0_{t,j} = C_{t,j}.

The minimum over s is a running one, so that a further change costs one pass over the losses.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["best_sequences"]


def best_sequences(losses: npt.ArrayLike, switches: int) -> np.ndarray:
    """Return the least total of sequences of columns with at most 0, 1, ... ``switches`` changes.

    >>> best_sequences([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], switches=2)
    array([2., 1., 0.])
    """
    losses = np.asarray(losses, dtype=np.float64)
    sums = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)])
    ends = sums.min(axis=1)
    totals = [ends[-1]]
    for _ in range(switches):
        reached = sums + np.minimum.accumulate(ends[:, np.newaxis] - sums, axis=0)
        ends = reached.min(axis=1)
        totals.append(ends[-1])
    return np.maximum(totals, 0.0)
