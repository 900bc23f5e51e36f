r"""From the scores of members to one opinion.

A learner's scores become chances by the softmax, which is what the logistic loss takes them for.
A committee of weights :math:`w_j` believes in their mean, :math:`\sum_j w_j p_j`: a soft vote, in
which who is sure counts more than who is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.committee.committee import Committee

__all__ = ["beliefs", "decoded", "drawn", "generator", "mixed", "softened", "tagged"]


def beliefs(learner: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the members' weights, and their scores of all rows (members x rows x scores)."""
    if isinstance(learner, Committee):
        return learner.weights, learner.score_rows(X)
    return np.ones(1), learner.score_rows(X)[np.newaxis]


def softened(scores: np.ndarray) -> np.ndarray:
    """Return the logarithm of the softmax along the last axis."""
    away = scores - scores.max(axis=-1, keepdims=True)
    return away - np.log(np.exp(away).sum(axis=-1, keepdims=True))


def mixed(weights: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Return the logarithm of the weighted mean of what these are logarithms of."""
    if len(weights) == 1:
        return logs[0]
    top = logs.max(axis=0)
    return top + np.log(np.tensordot(weights / weights.sum(), np.exp(logs - top), axes=1))


def decoded(learner: Any, X: Any, classes: int) -> np.ndarray:
    """Return with which probability the learner's decoder would predict each class, a row each.

    In a committee, a member is drawn by its weight first.
    """
    _, scores = beliefs(learner, X)
    chances = np.zeros((scores.shape[1], classes))
    for (weight, member), own in zip(_members(learner), scores, strict=True):
        if member.decoder.takes_top and member.task.zero_one:
            chances[np.arange(len(own)), own.argmax(axis=1)] += weight
            continue
        for row, theta in zip(chances, own, strict=True):
            atoms, shares = member.decoder.distribution(theta)
            np.add.at(row, atoms, weight * shares)
    return chances


def tagged(learner: Any, X: Any) -> np.ndarray:
    """Return with which probability the learner's decoder would predict each tag, a row each."""
    _, scores = beliefs(learner, X)
    chances = np.zeros(scores.shape[1:])
    for (weight, member), own in zip(_members(learner), scores, strict=True):
        if member.decoder.takes_top:
            chances += weight * (own > 0.0)
            continue
        means = np.array([member.decoder.mean_loss_encoding(theta) for theta in own])
        chances += weight * np.clip(0.5 + 0.5 * means / member.task.loss_factor, 0.0, 1.0)
    return chances


def _members(learner: Any) -> list[tuple[float, Any]]:
    """Return members with their weights, which add up to 1."""
    if not isinstance(learner, Committee):
        return [(1.0, learner)]
    weights = learner.weights / learner.weights.sum()
    return list(zip(weights.tolist(), learner.members, strict=True))


def drawn(chances: np.ndarray, rng: Any) -> np.ndarray:
    """Draw an index from every row of chances."""
    sums = np.cumsum(chances, axis=1)
    uniforms = generator(rng).random((len(sums), 1))
    index: np.ndarray = (sums <= uniforms * sums[:, -1:]).sum(axis=1)
    return np.minimum(index, chances.shape[1] - 1)


def generator(rng: Any) -> np.random.Generator:
    """Return a generator from a seed, an old or a new generator, or None for a fresh one."""
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(np.iinfo(np.int32).max))
    return np.random.default_rng(rng)
