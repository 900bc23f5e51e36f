"""The laws of decoders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftline.checks.base import labels_of, law, scores
from driftline.decoders import Decoder
from driftline.typing import Label

__all__ = ["check_decoder"]


def check_decoder(
    decoder: Decoder,
    labels: Sequence[Label] | None = None,
    *,
    size: int | None = None,
    trials: int = 100,
    seed: int = 0,
) -> None:
    r"""Check a decoder: that it is a distribution, and keeps the gap and the floor it claims.

    With L the loss and E the expected target loss under the decoder, these carry the theorems:
    E is at most ``(1 - surrogate_gap)`` times L, and :math:`2 (L - E)` at least ``rate_floor``
    times the squared gradient.

    Parameters
    ----------
    labels
        Labels to try. Default: all of them, where the task names them.
    size
        The number of scores. Default: the task's, where it has one.

    Examples
    --------
    >>> import driftline as dl
    >>> check_decoder(dl.decoders.GapOptimal(dl.losses.Logistic(dl.tasks.Multiclass(4))))
    """
    loss, task = decoder.loss, decoder.task
    labels = labels_of(task, labels)
    dim = task.geometry.size_of(task.labels.check(labels[0])) if size is None else size
    generator = np.random.default_rng(seed)
    slack = 1e-6 if loss.inexact else 1e-9
    gap, floor = decoder.surrogate_gap, decoder.rate_floor
    law(0.0 <= gap <= 1.0, "a surrogate_gap lies between 0 and 1, 0 if there is none", gap=gap)
    law(0.0 <= floor < np.inf, "a rate_floor is finite, 0 if there is none", floor=floor)
    for theta in scores(dim, trials, generator):
        _check_distribution(decoder, theta, slack)
        for label in labels:
            value, grad = loss.value_and_grad(theta, label)
            risk = decoder.risk(theta, label)
            seen = {"theta": theta, "label": label, "loss": value, "risk": risk}
            mean = decoder.mean_loss_encoding(theta)
            words = "the risk is <encode(label), mean_loss_encoding> + offset(label)"
            affine = task.encode(label) @ mean + task.offset(label)
            law(abs(risk - affine) <= slack * (1.0 + abs(risk)), words, **seen, mean=affine)
            if gap > 0.0:
                most = (1.0 - gap) * value
                words = "risk <= (1 - surrogate_gap) loss"
                law(risk <= most + slack * (1.0 + value), words, **seen, gap=gap)
            if floor > 0.0:
                least = floor * (grad @ grad)
                words = "2 (loss - risk) >= rate_floor |gradient|^2"
                law(2.0 * (value - risk) >= least - slack * (1.0 + value), words, **seen)


def _check_distribution(decoder: Decoder, theta: np.ndarray, slack: float) -> None:
    task, found = decoder.task, decoder.distribution(theta)
    weights = np.asarray(found.weights)
    law(weights.min() >= -1e-12, "probabilities are 0 or more", theta=theta, found=weights)
    law(abs(weights.sum() - 1.0) <= 1e-9, "probabilities add up to 1", theta=theta, found=weights)
    total = sum(w * task.encode_loss(p) for p, w in zip(found.atoms, weights, strict=True))
    mean = decoder.mean_loss_encoding(theta)
    words = "the distribution has the mean of mean_loss_encoding"
    law(np.allclose(total, mean, atol=10.0 * slack), words, theta=theta, found=total, mean=mean)
    if decoder.deterministic:
        certain = np.sum(weights > 1e-12) == 1
        law(certain, "a deterministic decoder has one prediction", theta=theta, found=found)
