"""A real data set whose labels are permuted at every flip."""

from __future__ import annotations

import numpy as np

from driftline.errors import InputError
from driftline.streams.base import Stream, check_count, segment_starts
from driftline.tasks import Task
from driftline.typing import Inputs

__all__ = ["Relabelled"]


class Relabelled(Stream):
    """Rows of a data set in random order; at every flip the entries of labels are permuted.

    This is the structured analogue of the paper's digit stream: the inputs do not change, and tag
    (or item) i becomes another one. Rows are scaled to norm 1.

    Parameters
    ----------
    task, inputs, labels
        What is predicted, an array or CSR matrix, and one row of integers per input.
    rounds
        How many rows to play at most; every row comes once.

    Examples
    --------
    >>> from driftline.tasks import Multilabel
    >>> labels = np.eye(3, dtype=int)[[0, 1, 2, 0, 1, 2]]
    >>> Relabelled(Multilabel(3), np.ones((6, 2)), labels, flips=1, seed=0).labels.sum(axis=0)
    array([2, 2, 2])
    """

    def __init__(
        self,
        task: Task,
        inputs: Inputs,
        labels: np.ndarray,
        rounds: int | None = None,
        flips: int = 0,
        seed: int | None = 0,
    ):
        if inputs.shape[0] != len(labels):
            raise InputError(f"there are {inputs.shape[0]} inputs but {len(labels)} labels")
        rows = len(labels) if rounds is None else min(check_count(rounds, 1, "rounds"), len(labels))
        generator = np.random.default_rng(seed)
        picked = generator.permutation(len(labels))[:rows]
        self.task = task
        self.starts = segment_starts(rows, flips)
        self.inputs = unit_rows(inputs[picked])
        self.labels = np.array(labels)[picked]
        for start in self.starts[1:]:
            order = generator.permutation(labels.shape[1])
            self.labels[start:] = self.labels[start:][:, order]


def unit_rows(inputs: Inputs) -> Inputs:
    """Return an array or CSR matrix with its rows scaled to norm 1, zero rows as they are."""
    if not hasattr(inputs, "tocsr"):
        norms = np.linalg.norm(inputs, axis=1, keepdims=True)
        return inputs / np.where(norms > 0.0, norms, 1.0)
    scaled = inputs.tocsr().astype(np.float64)
    squares = np.add.reduceat(np.r_[scaled.data**2, 0.0], scaled.indptr[:-1])
    counts = np.diff(scaled.indptr)
    norms = np.sqrt(np.where(counts > 0, squares, 1.0))
    scaled.data /= np.repeat(np.where(norms > 0.0, norms, 1.0), counts)
    return scaled
