"""Inputs that nobody should give: arrays, labels and sparse matrices, bent in many ways."""

import numpy as np
import scipy.sparse as sp

import driftline as dl

WILD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e154, 1e200, 5e-324, 0.0, -0.0, 1e-200, 2**63]

TASKS = {
    "classes": (dl.tasks.Multiclass(3), lambda rng, n: rng.integers(0, 3, n)),
    "signs": (dl.tasks.Binary(), lambda rng, n: 2 * rng.integers(0, 2, n) - 1),
    "tags": (dl.tasks.Multilabel(3), lambda rng, n: rng.integers(0, 2, (n, 3))),
    "levels": (dl.tasks.Ordinal(4), lambda rng, n: rng.integers(0, 4, n)),
    "sets": (
        dl.tasks.FixedSize(4, 2),
        lambda rng, n: rng.permuted(np.tile([0, 0, 1, 1], (n, 1)), axis=1),
    ),
    "rankings": (
        dl.tasks.LabelRanking(3),
        lambda rng, n: rng.permuted(np.tile([0, 1, 2], (n, 1)), axis=1),
    ),
    "costs": (dl.tasks.CostSensitive(1.0 - np.eye(3)), lambda rng, n: rng.integers(0, 3, n)),
}


def rows(rng, n=12, m=4):
    """Return rows of some plain type."""
    made = rng.standard_normal((n, m)) * 10.0 ** rng.integers(-3, 4)
    kinds = [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, bool, np.longdouble]
    with np.errstate(all="ignore"):
        made = made.astype(kinds[rng.integers(len(kinds))] if rng.random() < 0.5 else np.float64)
    return np.asfortranarray(made) if rng.random() < 0.3 else made


def bent_rows(rng, made):
    """Return rows with something wrong, or odd."""
    kind = rng.integers(16)
    n, m = made.shape
    if kind == 0:
        made = made.astype(np.float64)
        made[rng.integers(n), rng.integers(m)] = rng.choice(WILD)
    elif kind == 1:
        made = made[:, : rng.integers(0, m + 1)]
    elif kind == 2:
        made = made[: rng.integers(0, n + 1)]
    elif kind == 3:
        made = made[0]
    elif kind == 4:
        made = made[np.newaxis]
    elif kind == 5:
        made = made.astype(object)
    elif kind == 6:
        made = made.astype(complex)
    elif kind == 7:
        made = made.astype(str)
    elif kind == 8:
        made = made.tolist()
    elif kind == 9:
        made = [list(row) for row in made[:-1]] + [[1.0]]
    elif kind == 10:
        made = None
    elif kind == 11:
        made = 3.5
    elif kind == 12:
        made = made[::-1, ::-1]
    elif kind == 13:
        made = np.ma.masked_array(made, mask=rng.random(made.shape) < 0.2)
    elif kind == 14:
        made = np.array(made, dtype="datetime64[s]") if made.dtype.kind in "iu" else made
    return made


def bent_labels(rng, labels):
    """Return labels with something wrong, or odd."""
    kind = rng.integers(14)
    labels = np.array(labels)
    if kind == 0:
        labels.flat[rng.integers(labels.size)] = rng.choice([-1, 7, 2**40, -(2**62)])
    elif kind == 1:
        labels = labels.astype(float)
        labels.flat[rng.integers(labels.size)] = rng.choice([*WILD, 0.5])
    elif kind == 2:
        labels = labels[: rng.integers(0, len(labels))]
    elif kind == 3:
        labels = labels.astype(str)
    elif kind == 4:
        labels = labels.astype(object)
        labels.flat[0] = rng.choice([None, "a", 3.5, 10**30])
    elif kind == 5:
        labels = labels.tolist()
    elif kind == 6:
        labels = labels[np.newaxis]
    elif kind == 7:
        labels = labels[..., np.newaxis]
    elif kind == 8:
        labels = None
    elif kind == 9:
        labels = 1
    elif kind == 10:
        labels = labels.astype(np.uint64)
    elif kind == 11:
        labels = labels[::-1]
    elif kind == 12:
        labels = labels.astype(complex)
    return labels


def bent_sparse(rng, made):
    """Return a sparse matrix whose arrays were written to."""
    with np.errstate(all="ignore"):
        matrix = sp.csr_array(
            np.asarray(made, dtype=np.float64) * (rng.random(np.shape(made)) < 0.5)
        )
    if rng.random() < 0.5:
        matrix.has_canonical_format  # noqa: B018 - SciPy remembers the answer
    kind = rng.integers(11)
    if kind == 0 and matrix.nnz:
        matrix.indices[rng.integers(matrix.nnz)] = rng.choice([-1, 4, 2**30, -(2**31)])
    elif kind == 1:
        matrix.indptr[rng.integers(matrix.indptr.size)] = rng.choice([-1, 10**6, 2**31 - 1, 0])
    elif kind == 2:
        matrix.indices = matrix.indices[: max(0, matrix.nnz - 2)]
    elif kind == 3:
        matrix.data = matrix.data[: max(0, matrix.nnz - 2)]
    elif kind == 4:
        matrix.indptr = matrix.indptr[:-1]
    elif kind == 5:
        matrix.indices = matrix.indices.astype(
            rng.choice(["int8", "uint16", "int64", "float64", "uint64"])
        )
    elif kind == 6 and matrix.nnz:
        matrix.data[rng.integers(matrix.nnz)] = rng.choice(WILD)
    elif kind == 7:
        matrix.indices[:] = matrix.indices[::-1].copy()
    elif kind == 8:
        matrix = matrix.tocsc() if rng.random() < 0.5 else matrix.tocoo()
    elif kind == 9 and matrix.nnz:
        matrix.indices[:] = 0
    return matrix
