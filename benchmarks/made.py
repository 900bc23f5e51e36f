"""Streams of random numbers, and the learner that plays them."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits

import driftline as dl

GENERATOR = np.random.default_rng(0)


def dense_data(rounds, classes, features):
    X = GENERATOR.standard_normal((rounds, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    W = GENERATOR.standard_normal((classes, features))
    return X, np.argmax(X @ W.T, axis=1)


def digits_data(rounds, classes):
    """Return images of the first digits, again and again."""
    data = load_digits(n_class=classes)
    picked = GENERATOR.integers(0, len(data.target), rounds)
    longest = np.linalg.norm(data.data, axis=1).max()
    return data.data[picked] / longest, data.target[picked]


def sparse_data(rounds, classes, features, entries):
    columns = GENERATOR.integers(0, features, (rounds, entries))
    columns.sort(axis=1)
    values = np.full(rounds * entries, 1.0 / np.sqrt(entries))
    starts = np.arange(0, rounds * entries + 1, entries)
    X = sparse.csr_array((values, columns.ravel(), starts), shape=(rounds, features))
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    W = GENERATOR.standard_normal((features, classes))
    return X, np.argmax(X @ W, axis=1)


def learner(classes, dtype=np.float64):
    """Return the learner of the NumPy loop: the paper's, with the Polyak rate."""
    loss = dl.losses.Logistic(dl.tasks.Multiclass(classes))
    decoder, rate, domain = dl.decoders.UniformMix(loss), dl.rates.Polyak(), dl.domains.Ball(20.0)
    return dl.OGD(loss, decoder, rate, domain, dtype=dtype)
