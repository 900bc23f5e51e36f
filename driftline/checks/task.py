"""The laws of tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from driftline.checks.base import labels_of, law
from driftline.errors import InputError
from driftline.tasks import Task
from driftline.typing import Label, Prediction

__all__ = ["check_task"]

#: How many predictions are drawn from a mean.
DRAWS = 400


def check_task(
    task: Task,
    labels: Sequence[Label] | None = None,
    predictions: Sequence[Prediction] | None = None,
    *,
    trials: int = 100,
    seed: int = 0,
) -> None:
    """Check a task: its decomposition, its range, its best predictions and its draws.

    Parameters
    ----------
    labels
        Labels to try. Default: all of them, where the task names them.
    predictions
        Predictions to try. Default: the labels.
    trials
        How many mixtures of labels or predictions are tried.

    Examples
    --------
    >>> import driftline as dl
    >>> check_task(dl.tasks.Ordinal(4))
    >>> check_task(dl.tasks.PrecisionAtK(2, items=3), [[0, 1, 1]], [[0, 1], [0, 2], [1, 2]])
    """
    labels = labels_of(task, labels)
    made = labels if predictions is None else list(predictions)
    for prediction in made:
        kept = task.predictions.value(task.predictions.numbers(prediction))
        law(np.array_equal(kept, prediction), "predictions keep their numbers", given=prediction)
    for label in labels:
        for prediction in made:
            _check_pair(task, prediction, label)
    generator = np.random.default_rng(seed)
    for trial in range(trials):
        _check_mixture(task, labels, made, generator, draws=trial < 3)


def _check_pair(task: Task, prediction: Prediction, label: Label) -> None:
    seen = {"prediction": prediction, "label": label}
    rho, ours = task.encode(label), task.encode_loss(prediction)
    law(rho.ndim == 1 and np.isfinite(rho).all(), "encode gives a finite vector", **seen)
    law(ours.shape == rho.shape, "encode and encode_loss give vectors of one size", **seen)
    loss, affine = task.loss(prediction, label), rho @ ours + task.offset(label)
    law(
        abs(loss - affine) <= 1e-9 * (1.0 + abs(loss)),
        "the loss is <encode(label), encode_loss(prediction)> + offset(label)",
        **seen,
        loss=loss,
        decomposition=affine,
    )
    most = task.largest_loss * (1.0 + 1e-9)
    law(0.0 <= loss <= most, "losses lie between 0 and largest_loss", **seen, loss=loss)
    again = task.labels.value(task.labels.check(label))
    law(np.array_equal(again, label), "labels keep what is checked", label=label, kept=again)


def _check_mixture(
    task: Task,
    labels: list[Label],
    predictions: list[Prediction],
    generator: np.random.Generator,
    draws: bool,
) -> None:
    mu = _mean([task.encode(label) for label in labels], generator)
    best = task.best_prediction(mu)
    least = float(mu @ task.encode_loss(best))
    for prediction in predictions:
        value = float(mu @ task.encode_loss(prediction))
        words = "best_prediction(mu) has the least expected loss"
        law(least <= value + 1e-9, words, mu=mu, best=best, better=prediction)

    encodings = [task.encode_loss(prediction) for prediction in predictions]
    mean = _mean(encodings, generator)
    try:
        found = task.decompose(mean)
    except InputError:
        return  # a task need not decompose; its decoders must
    total = sum(w * task.encode_loss(p) for p, w in zip(found.atoms, found.weights, strict=True))
    law(np.min(found.weights) >= -1e-12, "decompose gives weights of 0 or more", mean=mean)
    law(abs(np.sum(found.weights) - 1.0) <= 1e-9, "weights of decompose add up to 1", mean=mean)
    words = "decompose gives a distribution of this mean"
    law(np.allclose(total, mean, atol=1e-8), words, mean=mean, found=total)
    if draws:
        _check_draws(task, mean, np.ptp(encodings, axis=0))


def _check_draws(task: Task, mean: np.ndarray, width: np.ndarray) -> None:
    """Compare the mean of many draws, by equally spaced uniform numbers, with the given mean."""
    uniforms = (np.arange(DRAWS) + 0.5) / DRAWS
    made = np.array([task.encode_loss(task.draw(mean, np.array([u]))) for u in uniforms])
    close = np.abs(made.mean(axis=0) - mean) <= 3.0 * width / math.sqrt(DRAWS) + 1e-6
    law(close.all(), "draws have the mean they are drawn with", mean=mean, found=made.mean(axis=0))


def _mean(vectors: list[np.ndarray], generator: np.random.Generator) -> np.ndarray:
    """Return a random mixture, of few vectors or of many."""
    weights = generator.exponential(size=len(vectors)) ** generator.choice([1.0, 4.0])
    return np.average(vectors, axis=0, weights=weights)
