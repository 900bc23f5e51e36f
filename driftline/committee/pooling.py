r"""From the scores of members to the probabilities and predictions of a committee.

A learner's scores become chances by the softmax, which is what the logistic loss takes them for.
A committee believes in the mean of its members' chances, :math:`\sum_j v_j p_j`, with weights that
follow their logarithmic losses (:mod:`driftline.committee.beliefs`). It predicts by the vote of its
members, and its certificate is about this vote. The two differ in few rows: there the chances of
the label that was voted for and of the most probable one are exchanged, so that the prediction is
also the most probable label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.committee.committee import Committee
from driftline.errors import InputError
from driftline.learner import (
    Member,
    gives_probabilities,
    log_probabilities,
    tag_log_probabilities,
)
from driftline.typing import Inputs

__all__ = [
    "beliefs",
    "chances_and_doubt",
    "chances_of",
    "decoded",
    "drawn",
    "generator",
    "log_chances",
    "tag_chances",
    "tagged",
    "voted",
]


def chances_of(learner: Member | Committee, inputs: Inputs) -> np.ndarray:
    """Return the probabilities of every label now, a row each."""
    made: np.ndarray = np.exp(log_chances(learner, inputs))
    return made


def log_chances(
    learner: Member | Committee,
    X: Inputs,
    vote: bool = True,
) -> np.ndarray:
    """Return the logarithm of every label's chance, a row each; of tags, that each is set.

    With ``vote`` the most probable label is the one that the learner predicts, if it predicts any.
    """
    return chances_and_doubt(learner, X, vote)[0]


def chances_and_doubt(
    learner: Member | Committee,
    X: Inputs,
    vote: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of chances, and for which rows the learner has no answer."""
    task = learner.task
    if not gives_probabilities(task):
        raise InputError(f"chances are those of classes, levels and tags, but the task is {task!r}")
    if task.geometry.tags:
        tags = tag_chances(learner, X, vote)[0]
        return tags, np.zeros(len(tags), dtype=bool)
    if learner.features is None:  # nothing is known yet, not even how many features there are
        count = len(list(task.answers.labels.all))
        return np.full((_rows(X), count), -np.log(count)), np.zeros(_rows(X), dtype=bool)
    if isinstance(learner, Committee) and learner.rule.scored:
        looked = learner.look(X)
        assert looked.probabilities is not None
        none = (looked.predictions[:, 0] < 0) & (not task.labels.signs)
        return np.log(looked.probabilities), none
    weights, scores = beliefs(learner, X)
    codes = voted(learner, scores) if vote else None
    none = np.zeros(scores.shape[1], dtype=bool)
    if codes is not None and not task.labels.signs:
        none = codes[:, 0] < 0
    return log_probabilities(task, scores, weights[np.newaxis], codes), none


def tag_chances(
    learner: Member | Committee, X: Inputs, vote: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of every tag's chance, and of that of its absence."""
    if learner.features is None:
        even = np.full((_rows(X), learner.task.dim), -np.log(2.0))
        return even, even.copy()
    weights, scores = beliefs(learner, X)
    tags = voted(learner, scores) if vote else None
    return tag_log_probabilities(scores, weights[np.newaxis], tags)


def _rows(X: Inputs) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def beliefs(learner: Member | Committee, X: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return how much members are believed, and their scores of all rows, members first."""
    if isinstance(learner, Committee):
        return learner.beliefs, learner.score_rows(X)
    return np.ones(1), learner.score_rows(X)[np.newaxis]


def voted(learner: Member | Committee, scores: np.ndarray) -> np.ndarray | None:
    """Return what the learner predicts for rows with these scores, a row each.

    None where a member draws its predictions at random.
    """
    if not _takes_top(learner):
        return None
    members = learner.members if isinstance(learner, Committee) else [learner]
    made = [member._top_rows(own) for member, own in zip(members, scores, strict=True)]
    if not isinstance(learner, Committee):
        return made[0]
    return learner.task.many.average(made, np.tile(learner.weights, (scores.shape[1], 1)))


def _takes_top(learner: Member | Committee) -> bool:
    """Say whether predictions are not drawn at random."""
    return learner._takes_top


def decoded(learner: Member | Committee, X: Inputs, classes: int) -> np.ndarray:
    """Return the probabilities with which the learner's decoder predicts each class, row by row.

    In a committee, a member is drawn by its weight first. What is left of 1 is the probability of
    no answer.
    """
    _, scores = beliefs(learner, X)
    chances = np.zeros((scores.shape[1], classes))
    for (weight, member), own in zip(_members(learner), scores, strict=True):
        if member._fixed.takes_top and member.task.answers.zero_one:
            codes = member._top_rows(own)[:, 0]
            rows = np.flatnonzero(codes >= 0)
            chances[rows, codes[rows]] += weight
            continue
        for row, theta in zip(chances, own, strict=True):
            atoms, shares = member._drawn_from(theta)
            answers = np.asarray(atoms) >= 0
            np.add.at(row, atoms[answers], weight * shares[answers])
    return chances


def tagged(learner: Member | Committee, X: Inputs) -> np.ndarray:
    """Return the probabilities with which the learner's decoder predicts each tag, row by row."""
    task: Any = learner.task  # of tags
    _, scores = beliefs(learner, X)
    chances = np.zeros(scores.shape[1:])
    for (weight, member), own in zip(_members(learner), scores, strict=True):
        if member._fixed.takes_top:
            chances += weight * (own > 0.0)
            continue
        means = np.array([member._mean_loss_encoding(theta) for theta in own])
        chances += weight * np.clip(0.5 + 0.5 * means / task.loss_factor, 0.0, 1.0)
    return chances


def _members(learner: Member | Committee) -> list[tuple[float, Member]]:
    """Return members with their weights, which add up to 1."""
    if not isinstance(learner, Committee):
        return [(1.0, learner)]
    weights = learner.weights / learner.weights.sum()
    return list(zip(weights.tolist(), learner.members, strict=True))


def drawn(
    chances: np.ndarray, rng: int | np.random.Generator | np.random.RandomState | None
) -> np.ndarray:
    """Draw an index from every row of chances."""
    sums = np.cumsum(chances, axis=1)
    uniforms = generator(rng).random((len(sums), 1))
    index: np.ndarray = (sums <= uniforms * sums[:, -1:]).sum(axis=1)
    return np.minimum(index, chances.shape[1] - 1)


def generator(rng: int | np.random.Generator | np.random.RandomState | None) -> np.random.Generator:
    """Return a generator from a seed, an old or a new generator, or None for a fresh one."""
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(np.iinfo(np.int32).max))
    return np.random.default_rng(rng)
