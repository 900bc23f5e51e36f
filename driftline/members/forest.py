r"""Decision trees that are grown anew from the last rows, at growing intervals.

Every tree is grown from a sample of the rows that are kept (:mod:`driftline.members.growing`), the
first from all of them. Growing begins after 8 rows and is repeated when there are half as many
more, so that a row costs a few passes over the kept rows, however many rows there are. In between,
rows are counted in their leaves. With :math:`n_{ik}` the counts of the leaf of tree i,

.. math:: \theta_k = \ln \frac1T \sum_{i=1}^T \frac{n_{ik} + s / K}{\sum_l n_{il} + s}.

When mistakes become much more frequent than before, everything is forgotten.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features import Map, Raw
from driftline.kernels import MEMBER, Kernel, helper, kernel, sorting_room
from driftline.learner import MOST_WEIGHT
from driftline.members.classes import ClassMember
from driftline.members.counting import (
    all_finite,
    check_weights,
    settle,
    weight_of,
)
from driftline.members.growing import DRAWS, grow, leaf_of, write_codes
from driftline.parts import check_flag, check_number, check_whole
from driftline.state.arena import Field
from driftline.tasks import Task

__all__ = ["Forest"]

#: The memory begins with: how many rows are kept, after how many more rows trees are grown anew,
#: the index of the next random number; rounds and mistakes since the start, and the sum of excess
#: mistakes.
HEAD, SEEN, WAIT, NEXT, ROUNDS, MISTAKES, EXCESS = 6, 0, 1, 2, 3, 4, 5

#: Trees are grown first after ``FIRST`` rows, and anew when rows have grown by this share.
FIRST, SHARE = 8.0, 0.5

#: The most rows that a leaf may have counted.
MOST_ROWS = 1e15

#: A forest starts again when mistakes beyond their mean so far plus ``MARGIN`` add up to ``ALARM``.
MARGIN, ALARM = 0.25, 5.0


@helper
def alarmed(memory, missed):
    """Add up excess mistakes; return whether they have become too many."""
    mean = (memory[MISTAKES] + 1.0) / (memory[ROUNDS] + 2.0)
    memory[EXCESS] = max(0.0, memory[EXCESS] + missed - mean - MARGIN)
    memory[ROUNDS] += 1.0
    memory[MISTAKES] += missed
    return memory[EXCESS] > ALARM


@helper
def cut_off(room, at, count):
    """Return the next numbers of a buffer, and where those after them begin."""
    return room[at : at + count], at + count


@helper
def write_scores(nodes, leaves, smoothing, x, places, out):
    """Write the logarithms of mean probabilities, and the leaf of every tree."""
    trees, classes = leaves.shape[0], out.size
    for k in range(classes):
        out[k] = 0.0
    for i in range(trees):
        place = leaf_of(nodes[i], x)
        places[i] = place
        total = smoothing
        for k in range(classes):
            total += leaves[i, place, k]
        for k in range(classes):
            out[k] += (leaves[i, place, k] + smoothing / classes) / total
    for k in range(classes):
        out[k] = math.log(out[k] / trees)


@helper
def grow_all(memory, constants, room, known, counted, kept, nodes, leaves):
    """Grow all trees from the rows that are kept."""
    (features, count), classes, most = kept.shape, leaves.shape[2], nodes.shape[1]
    bins, window = int(constants[4]), int(constants[1])
    flat, at = cut_off(room, 0, features * count)
    codes = flat.view(np.int16)[: features * count].reshape(features, count)
    flat, at = cut_off(room, at, features * bins)
    cuts = flat.reshape(features, bins)
    found, at = cut_off(room, at, features)
    order_of, at = cut_off(room, at, features)
    sorted_rows, at = cut_off(room, at, window)
    weight, at = cut_off(room, at, window)
    flat, at = cut_off(room, at, window)
    order = flat.view(np.int32)
    flat, at = cut_off(room, at, window)
    labels = flat.view(np.int32)
    flat, at = cut_off(room, at, 2 * most)
    spans = flat.reshape(most, 2)
    cells, at = cut_off(room, at, bins * classes)
    left, at = cut_off(room, at, classes)
    flat, at = cut_off(room, at, bins + 1)
    heads = flat.view(np.int32)
    buffer = room[at:]
    for j in range(features):
        found[j] = write_codes(kept[j], bins, weight, sorted_rows, buffer, cuts[j], codes[j])
    following = int(memory[NEXT])
    for i in range(nodes.shape[0]):
        following = grow(
            known, counted, codes, cuts, found, constants[9:], following, int(constants[6]),
            constants[5], i > 0, nodes[i], leaves[i], order, labels, weight, cells, order_of, spans,
            left, heads, sorted_rows.view(np.int32),
        )  # fmt: skip
    memory[NEXT] = following


@kernel(MEMBER)
def forest(
    inputs, labels, sample_weight, constants, memory, room, playing, learning, scores, trace,
    predictions,
):  # fmt: skip
    """Score rows by all trees; keep rows that are learned from, and grow trees when it is time."""
    rows, features = inputs.shape
    trees, window, most = int(constants[0]), int(constants[1]), int(constants[2])
    classes, smoothing, restarts = int(constants[3]), constants[7], constants[8] > 0.0
    known, at = cut_off(memory, HEAD, window)
    counted, at = cut_off(memory, at, window)
    flat, at = cut_off(memory, at, window * features)
    kept = flat.reshape(features, window)
    flat, at = cut_off(memory, at, trees * most * 3)
    nodes = flat.reshape(trees, most, 3)
    leaves = memory[at:].reshape(trees, most, classes)
    places, rest = room[:trees], room[trees:]
    for t in range(rows):
        x = inputs[t]
        if not all_finite(x):
            return t
        own = scores[min(t, scores.shape[0] - 1)]
        write_scores(nodes, leaves, smoothing, x, places, own)
        if playing:
            label, weight = labels[t, 0], weight_of(sample_weight, t)
            top = settle(own, label, weight, constants, t, trace, predictions)
            if weight == 0.0 or not learning[t]:
                continue
            missed = 0.0 if top == label else 1.0
            if restarts and alarmed(memory, missed):
                memory[SEEN], memory[WAIT] = 0.0, FIRST
                memory[ROUNDS] = memory[MISTAKES] = memory[EXCESS] = 0.0
                nodes[:, 0, 0] = -1.0
                leaves[:, 0] = 0.0
                places[:] = 0.0
            for i in range(trees):
                leaves[i, int(places[i]), label] += weight
            seen = int(memory[SEEN])
            known[seen % window], counted[seen % window] = label, weight
            for j in range(features):
                kept[j, seen % window] = x[j]
            memory[SEEN] = seen + 1 if seen + 1 < 2 * window else window
            memory[WAIT] -= 1.0
            if memory[WAIT] == 0.0:
                count = min(seen + 1, window)
                memory[WAIT] = max(FIRST, math.floor(SHARE * count))
                grow_all(
                    memory, constants, rest, known[:count], counted[:count], kept[:, :count],
                    nodes, leaves,
                )  # fmt: skip
    return rows


class Forest(ClassMember):
    """Decision trees, grown anew from the last rows as these become more.

    Good where few features decide, by thresholds. Trees that are grown from all kept rows at once
    need far fewer rows than Hoeffding trees, which see each row once, and cost no more.

    Parameters
    ----------
    task
        Classes, or signs.
    trees
        How many; all but the first see a sample of rows.
    window
        How many rows are kept.
    nodes
        How many nodes a tree has at most.
    bins
        Into how many parts the values of a feature are cut.
    least
        How many rows there are at least on both sides of a cut.
    subset
        What share of the features is looked at for a cut.
    smoothing
        How many rows every leaf has from the start, of all classes alike.
    restart
        Whether to forget everything when mistakes become much more frequent than before.
    features
        A map of inputs. Default: unchanged rows, since trees do not depend on the scale.
    seed
        The seed of the samples of rows and features.

    Examples
    --------
    >>> import driftline as dl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 6))
    >>> y = (X[:, 1] > 0.3).astype(int) ^ (X[:, 4] > 0.7)
    >>> bool(Forest(dl.tasks.Multiclass(2)).run(X, y).target_loss.mean() < 0.05)
    True
    """

    kernel: ClassVar[Kernel] = forest

    def __init__(
        self,
        task: Task,
        *,
        trees: int = 10,
        window: int = 5000,
        nodes: int = 255,
        bins: int = 64,
        least: float = 1.0,
        subset: float = 0.6,
        smoothing: float = 0.5,
        restart: bool = True,
        features: Map | None = Raw(),  # noqa: B008 (frozen)
        seed: int = 0,
    ):
        check_flag("restart", restart)
        settings = {
            "trees": check_whole("trees", trees, 1, 1000),
            "window": check_whole("window", window, int(FIRST), 10**6),
            "nodes": check_whole("nodes", nodes, 3, 10**5),
            "bins": check_whole("bins", bins, 2, 1024),
            "least": check_number("least", least, 1.0, 1e6),
            "subset": check_number("subset", subset, 0.0, 1.0),
            "smoothing": check_number("smoothing", smoothing, 1e-3, 1e3),
            "restart": bool(restart),
            "seed": check_whole("seed", seed, 0, 2**63 - 1),
        }
        super().__init__(task, features, settings, seed)

    def constants(self, width: int) -> list[float]:
        """Return sizes, settings of the growing, and random numbers."""
        own = self.settings
        sizes = [own["trees"], own["window"], own["nodes"], self._classes, own["bins"]]
        tried = max(1, math.ceil(own["subset"] * width))
        rest = [own["least"], tried, own["smoothing"], float(own["restart"])]
        return [*sizes, *rest, *_draws(int(own["seed"]))]

    def fields(self, width: int) -> tuple[Field, ...]:
        """Count rows, keep a window of them, and nodes with their counts of classes."""
        own = self.settings
        window, trees, nodes = self._window, int(own["trees"]), int(own["nodes"])
        whole: Any = {"least": 0.0, "whole": True}
        return (
            Field("seen", most=2 * window - 1, **whole),
            Field("wait", fill=FIRST, least=1.0, most=window + FIRST - 1, whole=True),
            Field("next", most=DRAWS - 1, **whole),
            Field("rounds", **whole),
            Field("mistakes", **whole),
            Field("excess", least=0.0),
            Field("known", (window,), most=self._classes - 1, **whole),
            Field("counted", (window,), least=0.0, most=MOST_WEIGHT),
            Field("kept", ("features", window)),
            Field("nodes", (trees, nodes, 3)),
            Field("leaves", (trees, nodes, "classes"), least=0.0, most=MOST_ROWS),
        )

    def started(self, width: int) -> np.ndarray:
        """Return trees of one leaf each, and no rows."""
        made = super().started(width)
        self.layout(width).views(made).nodes[:, :, 0] = -1.0
        return made

    def space(self, width: int) -> int:
        """Return room for the leaves of one row, and for the buffers of :func:`grow_all`."""
        own, trees = self.settings, int(self.settings["trees"])
        bins, nodes = int(own["bins"]), int(own["nodes"])
        rows = self._window * (width + 4) + sorting_room(self._window)
        cells = (bins + 2) * width + (bins + 1) * (self._classes + 1)
        return trees + rows + cells + 2 * nodes

    def check(self, memory: Any, width: int) -> None:
        """Refuse indices of nodes and features out of range: kernels follow them."""
        if memory.mistakes > memory.rounds:
            raise InputError(f"there are {memory.mistakes} mistakes in {memory.rounds} rounds")
        check_weights(memory.counted, int(memory.seen))
        feature, child = memory.nodes[:, :, 0], memory.nodes[:, :, 2]
        last, inner = feature.shape[1], feature >= 0.0
        good = (feature == np.rint(feature)) & (feature >= -1.0) & (feature < width)
        later = (child == np.rint(child)) & (child > np.arange(last)) & (child + 1 < last)
        if not (good & (~inner | later)).all():
            raise InputError("the nodes of a tree are cut at features, and lead to later nodes")

    def add(self, memory: Any, places: np.ndarray, zero: np.ndarray) -> None:
        """Keep the trees; the new features of kept rows are 0, as it is mapped now."""
        new = places < 0
        memory.kept[new] = zero[new][:, np.newaxis]
        feature, now = memory.nodes[:, :, 0], np.zeros(len(places))
        now[places[~new]] = np.flatnonzero(~new)
        inner = feature >= 0.0
        feature[inner] = now[feature[inner].astype(np.int64)]

    @property
    def _window(self) -> int:
        return int(self.settings["window"])


@lru_cache(maxsize=8)
def _draws(seed: int) -> tuple[float, ...]:
    """Return random numbers between 0 and 1."""
    return tuple(np.random.default_rng(seed).random(DRAWS).tolist())
