r"""Naive Bayes on bins of every feature, with counts that forget.

With :math:`n_{jbk}` the rows of class k whose feature j lay in bin b, and :math:`n_k` those of
class k, with decayed counts (:mod:`driftline.members.bins`), and a smoothing s,

.. math:: \theta_k = \ln (n_k + s) + \sum_j \ln\frac{n_{j b_j k} + s}{n_k + s b}

are logarithms of probabilities, up to a constant, if features are independent within a class.
Smoothing is in rows of full weight, so that counts fade where no new rows come.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from driftline.features import Map, Ranks
from driftline.kernels import MEMBER, Kernel, helper, kernel
from driftline.members.bins import bin_of, bins_of, counts, cut_of, growth_of, shrink, weight
from driftline.members.classes import ClassMember
from driftline.members.counting import (
    all_finite,
    settle,
    weight_of,
)
from driftline.parts import check_number, check_whole
from driftline.state.arena import Field
from driftline.tasks import Task

__all__ = ["NaiveBayes"]


@helper
def write_scores(places, seen, counts, weight, smoothing, out):
    """Write the logarithm of every class's probability, up to a constant."""
    features, bins, classes = counts.shape
    more = smoothing * weight
    for k in range(classes):
        out[k] = math.log(seen[k] + more)
        least, product = seen[k] + bins * more, 1.0
        for j in range(features):
            product *= (counts[j, int(places[j]), k] + more) / least
            if product < 1e-200:  # a factor is 1e-105 or more: no product before this was 0
                out[k] += math.log(product)
                product = 1.0
        out[k] += math.log(product)


@kernel(MEMBER)
def naive_bayes(
    inputs, labels, sample_weight, constants, memory, room, playing, learning, scores, trace,
    predictions,
):  # fmt: skip
    """Score rows by counts, and count them if they are learned from."""
    rows, features = inputs.shape
    bins, classes = int(constants[0]), int(constants[1])
    growth, smoothing, cut = constants[2], constants[3], constants[4]
    seen, all_counts = memory[1 : 1 + classes], memory[1:]
    counts = memory[1 + classes :].reshape(features, bins, classes)
    for t in range(rows):
        if not all_finite(inputs[t]):
            return t
        for j in range(features):
            room[j] = bin_of(inputs[t, j], cut, bins)
        own = scores[min(t, scores.shape[0] - 1)]
        write_scores(room, seen, counts, memory[0], smoothing, own)
        if playing:
            label, weight = labels[t, 0], weight_of(sample_weight, t)
            settle(own, label, weight, constants, t, trace, predictions)
            if weight == 0.0 or not learning[t]:
                continue
            memory[0] *= growth
            seen[label] += weight * memory[0]
            for j in range(features):
                counts[j, int(room[j]), label] += weight * memory[0]
            memory[0] = shrink(all_counts, memory[0])
    return rows


class NaiveBayes(ClassMember):
    """Counts of every feature's bins in every class, which forget.

    Good where many features are each a little informative by themselves.

    Parameters
    ----------
    task
        Classes, or signs.
    bins
        How many bins a feature has.
    half_life
        After how many rounds a row counts half.
    smoothing
        What is added to every count, in rows of full weight.
    features
        A map of inputs; mapped values are cut into bins of equal size. Default: ranks, so that bins
        are quantiles.
    seed
        Unused, since nothing is drawn; part of the learner's fingerprint.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=2000, flips=1, seed=0)
    >>> bool(NaiveBayes(stream.task).run(stream).target_loss.mean() < 0.2)
    True
    """

    kernel: ClassVar[Kernel] = naive_bayes

    def __init__(
        self,
        task: Task,
        *,
        bins: int = 8,
        half_life: float = 300.0,
        smoothing: float = 0.1,
        features: Map | None = Ranks(),  # noqa: B008 (frozen)
        seed: int | None = 0,
    ):
        settings = {
            "bins": check_whole("bins", bins, 2, 1024),
            "half_life": check_number("half_life", half_life, 1.0, 1e9),
            "smoothing": check_number("smoothing", smoothing, 1e-3, 1e3),
        }
        super().__init__(task, features, settings, seed)

    def constants(self, width: int) -> list[float]:
        """Return bins, classes, growth, smoothing, and where bins end."""
        own = self.settings
        growth = growth_of(own["half_life"])
        return [own["bins"], self._classes, growth, own["smoothing"], cut_of(width)]

    def fields(self, width: int) -> tuple[Field, ...]:
        """Count classes, and their bins of every feature."""
        axes = ("features", int(self.settings["bins"]), "classes")
        return weight("weight"), counts("seen", "classes"), counts("counts", *axes)

    def space(self, width: int) -> int:
        """Return room for the bins of one row."""
        return width

    def add(self, memory: Any, places: np.ndarray, zero: np.ndarray) -> None:
        """Let new features have lain in the bin of 0 in all rows."""
        new = np.flatnonzero(places < 0)
        memory.counts[new, bins_of(zero, memory.counts.shape[1])[new]] = memory.seen
