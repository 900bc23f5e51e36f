"""Inputs as sets of items that share one weight vector."""

from __future__ import annotations

from driftline.inputs.sequences import Sequences
from driftline.typing import Inputs

__all__ = ["Items"]


class Items(Sequences):
    """One array (items x features) a round; an item's score is its features times the weights.

    To the loop items are positions with a single tag, and without transitions.

    >>> import numpy as np
    >>> items = Items([np.eye(3)[:2]])
    >>> items.scores(np.array([[5.0, 6.0, 7.0]]), False, 0, False)
    array([5., 6.])
    """

    group, members = "set", "items"

    def __init__(self, inputs: Inputs):
        super().__init__(inputs, tags=1, transitions=False)
