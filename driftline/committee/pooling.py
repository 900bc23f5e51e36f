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
from driftline.learner import Member
from driftline.tasks import Task
from driftline.typing import Inputs

__all__ = [
    "agreed",
    "beliefs",
    "chances_and_doubt",
    "decoded",
    "drawn",
    "gives_chances",
    "generator",
    "log_chances",
    "tag_chances",
    "tagged",
    "voted",
]


def gives_chances(task: Task) -> bool:
    """Say whether labels of a task have chances: classes, signs, levels and tags."""
    return task.answers.kind in ("classes", "sign", "levels", "tags")


def log_chances(
    learner: Member | Committee,
    X: Inputs,
    vote: bool = True,
    predicted: np.ndarray | None = None,
) -> np.ndarray:
    """Return the logarithm of every label's chance, a row each; of tags, that each is set.

    With ``vote`` the most probable label is the one that the learner predicts, if it predicts any.
    Predictions of classes or levels that are known already, -1 for none, need not be made again.
    """
    return chances_and_doubt(learner, X, vote, predicted)[0]


def chances_and_doubt(
    learner: Member | Committee,
    X: Inputs,
    vote: bool = True,
    predicted: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of chances, and for which rows the learner has no answer."""
    task = learner.task
    if not gives_chances(task):
        raise InputError(f"chances are those of classes, levels and tags, but the task is {task!r}")
    if task.kind == "tags":
        tags = tag_chances(learner, X, vote)[0]
        return tags, np.zeros(len(tags), dtype=bool)
    if learner.features is None:  # nothing is known yet, not even how many features there are
        count = len(list(task.answers.all_labels))
        return np.full((_rows(X), count), -np.log(count)), np.zeros(_rows(X), dtype=bool)
    weights, scores = beliefs(learner, X)
    logs = mixed(weights, softened(_label_scores(task, scores)))
    if predicted is not None and vote and _takes_top(learner):
        codes: np.ndarray | None = predicted[:, np.newaxis]
    else:
        codes = voted(learner, scores) if vote else None
    if codes is not None and task.kind == "sign":
        codes = (codes + 1) // 2
    none = np.zeros(len(logs), dtype=bool) if codes is None else codes[:, 0] < 0
    return agreed(logs, codes), none


def tag_chances(
    learner: Member | Committee, X: Inputs, vote: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of every tag's chance, and of that of its absence."""
    if learner.features is None:
        even = np.full((_rows(X), learner.task.dim), -np.log(2.0))
        return even, even.copy()
    weights, scores = beliefs(learner, X)
    yes = mixed(weights, -np.logaddexp(0.0, -scores))
    no = mixed(weights, -np.logaddexp(0.0, scores))
    tags = voted(learner, scores) if vote else None
    if tags is None:
        return yes, no
    other = (yes > no) != (tags > 0)  # where the vote is not what is most probable
    return np.where(other, no, yes), np.where(other, yes, no)


def _rows(X: Inputs) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _label_scores(task: Task, scores: np.ndarray) -> np.ndarray:
    """Return a score for every label: of levels, the sum of those of all steps up to it."""
    if task.answers.kind == "classes":
        return scores
    steps = scores if task.kind == "sign" else scores.cumsum(axis=2)
    return np.concatenate([np.zeros((*scores.shape[:2], 1)), steps], axis=2)


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
    made = [member.top_rows(own) for member, own in zip(members, scores, strict=True)]
    if not isinstance(learner, Committee):
        return made[0]
    return learner.task.average_rows(made, np.tile(learner.weights, (scores.shape[1], 1)))


def _takes_top(learner: Member | Committee) -> bool:
    """Say whether no member draws its predictions at random."""
    members = learner.members if isinstance(learner, Committee) else [learner]
    return all(member.takes_top for member in members)


def agreed(logs: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """Return logarithms of chances in which the label that was voted for is the most probable.

    Where the vote is for no answer, -1, they are as they are.
    """
    if codes is None or logs.shape[1] < 2:
        return logs
    rows, top = np.arange(len(logs)), logs.argmax(axis=1)
    chosen = np.where(codes.ravel() < 0, top, codes.ravel())
    made = logs.copy()
    made[rows, top], made[rows, chosen] = logs[rows, chosen], logs[rows, top]
    tied = np.flatnonzero(made.argmax(axis=1) != chosen)  # as probable as one before it
    made[tied, chosen[tied]] = np.nextafter(made[tied, chosen[tied]], np.inf)
    return made


def softened(scores: np.ndarray) -> np.ndarray:
    """Return the logarithm of the softmax along the last axis."""
    away = scores - scores.max(axis=-1, keepdims=True)
    return away - np.log(np.exp(away).sum(axis=-1, keepdims=True))


def mixed(weights: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Return the logarithm of the weighted mean of ``exp(logs)``, which are chances."""
    if len(weights) == 1:
        return logs[0]
    top = logs.max(axis=0)
    means = np.tensordot(weights / weights.sum(), np.exp(logs - top), axes=1)
    made: np.ndarray = np.minimum(top + np.log(means), 0.0)  # weights may add up to 1 + 2e-16
    return made


def decoded(learner: Member | Committee, X: Inputs, classes: int) -> np.ndarray:
    """Return the probabilities with which the learner's decoder predicts each class, row by row.

    In a committee, a member is drawn by its weight first. What is left of 1 is the probability of
    no answer.
    """
    _, scores = beliefs(learner, X)
    chances = np.zeros((scores.shape[1], classes))
    for (weight, member), own in zip(_members(learner), scores, strict=True):
        if member.takes_top and member.task.answers.zero_one:
            codes = member.top_rows(own)[:, 0]
            rows = np.flatnonzero(codes >= 0)
            chances[rows, codes[rows]] += weight
            continue
        for row, theta in zip(chances, own, strict=True):
            atoms, shares = member.drawn_from(theta)
            answers = np.asarray(atoms) >= 0
            np.add.at(row, atoms[answers], weight * shares[answers])
    return chances


def tagged(learner: Member | Committee, X: Inputs) -> np.ndarray:
    """Return the probabilities with which the learner's decoder predicts each tag, row by row."""
    task: Any = learner.task  # of tags
    _, scores = beliefs(learner, X)
    chances = np.zeros(scores.shape[1:])
    for (weight, member), own in zip(_members(learner), scores, strict=True):
        if member.takes_top:
            chances += weight * (own > 0.0)
            continue
        means = np.array([member.mean_loss_encoding(theta) for theta in own])
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
