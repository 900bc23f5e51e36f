"""``python -m benchmarks.rankings``: documents ranked in one pass, beside pairwise steps.

NDCG@10 of every query before it is learned from: ``auto``; and logistic steps over all pairs of
different grades, compiled, on rows that are standardised as they come, at the best of seven steps
in hindsight. LightGBM's example is played if ``DRIFTLINE_DATA`` is set, in some random orders.
"""

from __future__ import annotations

import gzip
import math
import os
import time
from pathlib import Path

import click
import numpy as np
from numba import njit

import driftline as dl

STEPS = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)
TOP = 10

Queries = tuple[list[np.ndarray], list[np.ndarray]]


#: Documents, queries, flips, features and noise of made-up streams.
MADE_UP = (
    (50, 500, 2, 8, 0.2),
    (50, 500, 0, 60, 0.8),
    (200, 300, 0, 20, 0.5),
    (200, 300, 3, 20, 0.5),
    (500, 120, 1, 20, 0.5),
    (500, 100, 0, 60, 0.8),
    (2000, 30, 0, 50, 0.2),
    (2000, 30, 1, 20, 0.5),
)


def made_up(
    documents: int, rounds: int, flips: int, features: int, noise: float, seed: int
) -> Queries:
    """Return queries of random documents with five grades, whose weights change at flips."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((rounds, documents, features))
    weights = rng.standard_normal((flips + 1, features))
    labels = []
    for t in range(rounds):
        scores = inputs[t] @ weights[t * (flips + 1) // rounds] / math.sqrt(features)
        scores += noise * rng.standard_normal(documents)
        labels.append(np.digitize(scores, [0.5, 1.0, 1.5, 2.0]))
    return list(inputs), labels


def lightgbm(seed: int) -> Queries:
    """Return LightGBM's example in a random order."""
    from sklearn.datasets import load_svmlight_file

    folder = Path(os.environ["DRIFTLINE_DATA"]) / "ltr_lightgbm"
    with gzip.open(folder / "rank.train.gz") as file:
        X, y = load_svmlight_file(file)
    ends = np.cumsum(np.loadtxt(folder / "rank.train.query", dtype=int))
    rows, labels = np.split(X.toarray(), ends[:-1]), np.split(y.astype(int), ends[:-1])
    order = np.random.default_rng(seed).permutation(len(rows))
    return [rows[i] for i in order], [labels[i] for i in order]


def gain(scores: np.ndarray, grades: np.ndarray) -> float:
    """Return NDCG@10 of sorting by score; 1 for a query without relevant documents."""
    discounts = 1.0 / np.log2(np.arange(2, TOP + 2))
    best = np.sort(grades)[::-1][:TOP]
    top = grades[np.argsort(-scores, kind="stable")][:TOP]
    most = float(best @ discounts[: len(best)])
    return float(top @ discounts[: len(top)]) / most if most else 1.0


@njit
def pairwise_steps(w, X, grades, step):
    """Make one step along the mean gradient of all pairs of different grades."""
    theta = X @ w
    slope, pairs = np.zeros(len(grades)), 0
    for i in range(len(grades)):
        for j in range(len(grades)):
            if grades[i] > grades[j]:
                pull = 1.0 / (1.0 + np.exp(theta[i] - theta[j]))
                slope[i] += pull
                slope[j] -= pull
                pairs += 1
    if pairs:
        w += step * (X.T @ slope) * len(grades) / pairs


def steps(inputs: list[np.ndarray], labels: list[np.ndarray], step: float) -> float:
    """Play pairwise steps on standardised rows; return the mean NDCG@10."""
    scaler, w, total = dl.features.Standardiser(), np.zeros(inputs[0].shape[1]), 0.0
    for X, grades in zip(inputs, labels, strict=True):
        Z = np.ascontiguousarray(scaler.transform(X)[:, : X.shape[1]])
        total += gain(Z @ w, grades)
        pairwise_steps(w, Z, grades, step)
    return total / len(labels)


def play(name: str, streams: list[Queries]) -> None:
    """Print the means of all orders, and queries a second."""
    task, table = dl.tasks.NDCG(max_relevance=4, cutoff=TOP), np.zeros(len(STEPS))
    ours, times, count = [], np.zeros(2), 0
    dl.auto(task).run(*(part[:3] for part in streams[0]))
    for inputs, labels in streams:
        count += len(labels)
        began = time.perf_counter()
        trace = dl.auto(task).run(inputs, labels)
        times[0] += time.perf_counter() - began
        ours.append(1.0 - trace.target_loss.mean())
        for place, step in enumerate(STEPS):
            began = time.perf_counter()
            table[place] += steps(inputs, labels, step) / len(streams)
            times[1] += (time.perf_counter() - began) / len(STEPS)
    click.echo(f"{name}: NDCG@10, queries a second")
    click.echo(
        f"  auto            {np.mean(ours):.4f} +- {np.std(ours):.4f} {count / times[0]:10.0f}"
    )
    best = int(table.argmax())
    click.echo(
        f"  steps, best {STEPS[best]:<4g}{table[best]:.4f}           {count / times[1]:10.0f}"
    )


@click.command()
@click.option("--seeds", default=4, show_default=True)
@click.option("--first", default=100, show_default=True, help="The first seed.")
def main(seeds: int, first: int) -> None:
    """Print one table a stream."""
    chosen = range(first, first + seeds)
    if os.environ.get("DRIFTLINE_DATA"):
        play("LightGBM's example", [lightgbm(seed) for seed in chosen])
    for setting in MADE_UP:
        documents, rounds, flips, features, noise = setting
        name = f"{rounds} queries of {documents}, {flips} flips, {features} features, noise {noise}"
        play(name, [made_up(*setting, seed) for seed in chosen])


if __name__ == "__main__":
    main()
