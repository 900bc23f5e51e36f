r"""Probabilities of labels, from the scores that rounds were predicted by.

A learner's scores become probabilities by the softmax, which is what the logistic loss takes them
for. Of several members they are averaged, :math:`\sum_j v_j p_j(y)`, by weights of every round.
Sums have a fixed order, so that rounds have the same bits one by one and together.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.kernels import POOL, exp, helper, kernel, peak
from driftline.tasks import Task

__all__ = [
    "agreed",
    "gives_probabilities",
    "labels_of",
    "log_probabilities",
    "tag_log_probabilities",
]


#: Means below this are taken again relative to the largest probability: exponentials vanish.
VANISHING = 1e-290


@kernel(POOL)
def pool(scores, weights, room, out):
    """Write the logarithms of the members' mean probabilities, for every round.

    Weights have a row for every round, or one for all. Means have full relative precision, however
    small they are.
    """
    rounds, members, labels = scores.shape
    for t in range(rounds):
        own, mean, total = weights[min(t, weights.shape[0] - 1)], out[t], 0.0
        for k in range(labels):
            mean[k] = 0.0
        for j in range(members):
            share = own[j] / soften(scores[t, j], room)
            for k in range(labels):
                mean[k] += share * room[k]
        for k in range(labels):
            total += mean[k]  # the sum of weights
        for k in range(labels):
            if mean[k] < VANISHING:
                mean[k] = far_mean(scores[t], own, total, k, room)
            else:
                mean[k] = math.log(mean[k] / total)


@helper
def soften(scores, out):
    """Write the exponentials of scores over that of the largest; return their sum."""
    top, norm = peak(scores)[0], 0.0
    for k in range(scores.size):
        out[k] = exp(scores[k] - top)
        norm += out[k]
    return norm


@helper
def far_mean(scores, weights, total, label, room):
    """Return the logarithm of a mean of probabilities that may all be as good as 0."""
    members, labels = scores.shape
    most = -math.inf
    for j in range(members):
        room[labels + j] = scores[j, label] - peak(scores[j])[0]
        room[labels + j] -= math.log(soften(scores[j], room))
        most = max(most, room[labels + j])
    mean = 0.0
    for j in range(members):
        mean += weights[j] / total * exp(room[labels + j] - most)
    return most + math.log(mean)


def gives_probabilities(task: Task) -> bool:
    """Say whether labels of a task have probabilities: classes, signs, levels and tags."""
    return bool(task.geometry.exclusive or task.geometry.tags)


def labels_of(task: Task) -> int:
    """Return how many labels have a probability in every row; of tags, how many tags there are."""
    return task.geometry.tags or len(task.labels.all)


def log_probabilities(
    task: Task, scores: np.ndarray, weights: np.ndarray, predicted: np.ndarray | None
) -> np.ndarray:
    """Return the logarithm of every label's probability, a row each; of tags, that each is set.

    Parameters
    ----------
    task
        Classes, signs, levels or tags.
    scores
        Members, rounds, scores.
    weights
        Of members: a row for every round, or one for all.
    predicted
        The predictions as rows of numbers, which are to be the most probable labels; None where
        they are drawn.
    """
    if task.geometry.tags:
        return tag_log_probabilities(scores, weights, predicted)[0]
    if predicted is not None:
        predicted = task.labels.codes(predicted)
    return agreed(_pooled(_label_scores(task, scores), weights), predicted)


def tag_log_probabilities(
    scores: np.ndarray, weights: np.ndarray, predicted: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of every tag's probability, and of that of its absence."""
    _, rounds, tags = scores.shape
    pairs = np.stack([np.zeros_like(scores), scores], axis=-1)  # every tag is a round of its own
    made = _pooled(
        pairs.reshape(len(pairs), rounds * tags, 2),
        np.repeat(weights, tags, axis=0) if len(weights) > 1 else weights,
    )
    no, yes = np.moveaxis(made.reshape(rounds, tags, 2), 2, 0)
    if predicted is None:
        return yes, no
    other = (yes > no) != (predicted > 0)  # where the prediction is not what is most probable
    return np.where(other, no, yes), np.where(other, yes, no)


def _label_scores(task: Task, scores: np.ndarray) -> np.ndarray:
    """Return a score for every label: of levels, the sum of those of all steps up to it."""
    if task.geometry.exclusive == task.dim:
        return scores
    steps = scores.cumsum(axis=2)  # of a sign, one step
    return np.concatenate([np.zeros((*scores.shape[:2], 1)), steps], axis=2)


def _pooled(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the logarithms of mean probabilities; scores are by member, round and label."""
    members, rounds, labels = scores.shape
    out = np.empty((rounds, labels))
    given = np.ascontiguousarray(scores.transpose(1, 0, 2)), np.ascontiguousarray(weights)
    if rounds:
        pool(*given, np.empty(labels + members), out)
    return out


def agreed(logs: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """Return logarithms of probabilities in which the predicted label is the most probable.

    Where the prediction is no answer, -1, they are as they are.
    """
    if codes is None or logs.shape[1] < 2:
        return logs
    top = logs.argmax(axis=1)
    chosen = np.where(codes.ravel() < 0, top, codes.ravel())
    if (chosen == top).all():
        return logs
    rows, made = np.arange(len(logs)), logs.copy()
    made[rows, top], made[rows, chosen] = logs[rows, chosen], logs[rows, top]
    tied = np.flatnonzero(made.argmax(axis=1) != chosen)  # as probable as one before it
    made[tied, chosen[tied]] = np.nextafter(made[tied, chosen[tied]], np.inf)
    return made
