r"""The nearest of the last rows, by Euclidean distance, vote for their classes.

With :math:`N` the k nearest of the last rows, at distances :math:`\delta_i`, a class has the share
:math:`v_k` of all votes :math:`h_i / \delta_i` (or :math:`h_i`), where :math:`h_i` are the sample
weights of the rows, and

.. math:: \theta_k = \ln\frac{|N| v_k + 1/K}{|N| + 1}.

Rows are kept feature by feature, so that the distances to all of them take one pass over contiguous
numbers for each feature.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from driftline.features import Map, Standardise
from driftline.kernels import MEMBER, Kernel, helper, kernel
from driftline.learner import MOST_WEIGHT
from driftline.members.classes import ClassMember
from driftline.members.counting import (
    all_finite,
    check_weights,
    settle,
    weight_of,
)
from driftline.parts import check_flag, check_whole
from driftline.state.arena import Field
from driftline.tasks import Task

__all__ = ["Neighbours"]

#: The squared distance below which a neighbour's vote stops growing.
NEAR = 1e-12


@helper
def write_distances(x, rows, count, out):
    """Write the squared distances of a row to the first ``count`` rows that are kept.

    Four features a pass: then sums are read and written less often than cells are.
    """
    features = x.size
    for i in range(count):
        out[i] = 0.0
    whole = features - features % 4
    for j in range(0, whole, 4):
        for i in range(count):
            a, b = rows[j, i] - x[j], rows[j + 1, i] - x[j + 1]
            c, d = rows[j + 2, i] - x[j + 2], rows[j + 3, i] - x[j + 3]
            out[i] += (a * a + b * b) + (c * c + d * d)
    for j in range(whole, features):
        for i in range(count):
            away = rows[j, i] - x[j]
            out[i] += away * away


@helper
def find_nearest(distances, count, most, near, places):
    """Write the places of the nearest rows and their distances, nearest first; return how many.

    Rows at the same distance are in the order in which they are kept.
    """
    found = 0
    for i in range(count):
        away = distances[i]
        if found == most and not away < near[most - 1]:
            continue
        if found < most:
            found += 1
        at = found - 1
        while at > 0 and near[at - 1] > away:
            near[at], places[at] = near[at - 1], places[at - 1]
            at -= 1
        near[at], places[at] = away, i
    return found


@helper
def write_scores(labels, counted, near, places, found, weighted, out):
    """Write the logarithm of every class's share of the votes, smoothed by one vote for all."""
    classes = out.size
    for k in range(classes):
        out[k] = 0.0
    total = 0.0
    for i in range(found):
        place = int(places[i])
        vote = counted[place] / math.sqrt(near[i] + NEAR) if weighted else counted[place]
        out[int(labels[place])] += vote
        total += vote
    for k in range(classes):
        share = found * out[k] / total if total > 0.0 else found / classes
        out[k] = math.log((share + 1.0 / classes) / (found + 1.0))


@kernel(MEMBER)
def neighbours(
    inputs, labels, sample_weight, constants, memory, room, playing, learning, scores, trace,
    predictions,
):  # fmt: skip
    """Score rows by their nearest neighbours; rows that are learned from replace the oldest."""
    rows, features = inputs.shape
    most, window, weighted = int(constants[0]), int(constants[1]), constants[2] > 0.0
    known, counted = memory[1 : 1 + window], memory[1 + window : 1 + 2 * window]
    kept = memory[1 + 2 * window :].reshape(features, window)
    distances, near = room[:window], room[window : window + most]
    places = room[window + most :]
    for t in range(rows):
        if not all_finite(inputs[t]):
            return t
        seen = int(memory[0])
        count = min(seen, window)
        own = scores[min(t, scores.shape[0] - 1)]
        write_distances(inputs[t], kept, count, distances)
        found = find_nearest(distances, count, most, near, places)
        write_scores(known, counted, near, places, found, weighted, own)
        if playing:
            weight = weight_of(sample_weight, t)
            settle(own, labels[t, 0], weight, constants, t, trace, predictions)
            if weight == 0.0 or not learning[t]:
                continue
            place = seen % window
            known[place], counted[place] = labels[t, 0], weight
            for j in range(features):
                kept[j, place] = inputs[t, j]
            memory[0] = seen + 1 if seen + 1 < 2 * window else window
    return rows


class Neighbours(ClassMember):
    """The classes of the nearest among the last rows.

    Good where labels depend on rows locally: clusters, curved borders. Rows from before a change
    are forgotten once the window has passed it.

    Parameters
    ----------
    task
        Classes, or signs.
    k
        How many neighbours vote.
    window
        How many rows are kept.
    weighted
        Whether votes are weighted by one over the distance.
    features
        A map of inputs, in whose rows distances are measured. Default: standardised.
    seed
        Unused, since nothing is drawn; part of the learner's fingerprint.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=1000, flips=0, seed=0)
    >>> bool(Neighbours(stream.task).run(stream).target_loss.mean() < 0.2)
    True
    """

    kernel: ClassVar[Kernel] = neighbours

    _fixed = replace(ClassMember._fixed, form="none")  # distances of codes mean nothing

    def __init__(
        self,
        task: Task,
        *,
        k: int = 5,
        window: int = 1000,
        weighted: bool = True,
        features: Map | None = Standardise(constant=False),  # noqa: B008 (frozen)
        seed: int | None = 0,
    ):
        check_flag("weighted", weighted)
        settings = {
            "k": check_whole("k", k, 1, 1000),
            "window": check_whole("window", window, k, 10**6),
            "weighted": bool(weighted),
        }
        super().__init__(task, features, settings, seed)

    def constants(self, width: int) -> list[float]:
        """Return how many neighbours vote, the window, and whether votes are weighted."""
        return [float(value) for value in self.settings.values()]

    def fields(self, width: int) -> tuple[Field, ...]:
        """Count rows, and keep labels, sample weights and features of a window of them."""
        window, last = int(self.settings["window"]), self._classes - 1
        return (
            Field("seen", least=0.0, most=2 * window - 1, whole=True),
            Field("known", (window,), least=0.0, most=last, whole=True),
            Field("counted", (window,), least=0.0, most=MOST_WEIGHT),
            Field("kept", ("features", window)),
        )

    def space(self, width: int) -> int:
        """Return room for the distances to all rows, and the nearest of them."""
        return int(self.settings["window"]) + 2 * int(self.settings["k"])

    def check(self, memory: Any, width: int) -> None:
        """Refuse rows that are kept and do not count."""
        check_weights(memory.counted, int(memory.seen))

    def add(self, memory: Any, places: np.ndarray, zero: np.ndarray) -> None:
        """Let new features be 0 in kept rows, as it is mapped now.

        Old features do not change: where a map divides by the root of the number of features,
        distances have a slightly larger scale until the window has passed.
        """
        new = places < 0
        memory.kept[new] = zero[new][:, np.newaxis]
