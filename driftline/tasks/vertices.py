"""Predictions that are vertices of a polytope, for many rounds at once.

The kernels of task and polytope are called by their addresses. A prediction is drawn from a mean
that is a vertex: so there is no second way from vertices to predictions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftline.kernels import (
    AVERAGE,
    BEST,
    LOSSES,
    call_draw,
    call_encode,
    call_encode_loss,
    call_point,
    dot,
    helper,
    kernel,
)
from driftline.tasks.many import Many
from driftline.typing import CheckedLabels

__all__ = ["ManyVertices"]

# slots of code: addresses of the task and of the polytope, and how many parameters the task has
ENCODE, ENCODE_LOSS, DRAW, MAXIMIZE, PARAMS = range(5)


@helper
def write_best(point, uniform, code, params, room, prediction):
    """Write the prediction that is the best vertex in the direction of a point."""
    d, own = point.size, params[2 : 2 + code[PARAMS]]
    vertex, encoded, scratch = room[:d], room[d : 2 * d], room[2 * d :]
    call_point(code[MAXIMIZE], (point, params[2 + code[PARAMS] :], scratch, vertex))
    for i in range(d):
        vertex[i] = params[0] * vertex[i] + params[1]
    call_draw(code[DRAW], (vertex, own, uniform, scratch, prediction, encoded))


@kernel(BEST)
def best(scores, code, params, room, out):
    """Write the best vertex for every row of scores; the room begins with a uniform number."""
    for t in range(scores.shape[0]):
        write_best(scores[t], room[:1], code, params, room[1:], out[t])


@kernel(AVERAGE)
def average(predictions, weights, code, params, room, out):
    """Write the best vertex for the mean encoding of every round.

    The room begins with a uniform number and the size of encodings.
    """
    members, rounds = predictions.shape[0], predictions.shape[1]
    d = int(room[1])
    uniform, mean, target = room[:1], room[2 : 2 + d], room[2 + d : 2 + 2 * d]
    for t in range(rounds):
        for i in range(d):
            mean[i] = 0.0
        for j in range(members):
            own = params[2 : 2 + code[PARAMS]]
            call_encode(code[ENCODE], (predictions[j, t], own, target))
            for i in range(d):
                mean[i] += weights[t, j] * target[i]
        write_best(mean, uniform, code, params, room[2 + 2 * d :], out[t])


@kernel(LOSSES)
def losses(predictions, labels, code, params, room, out):
    """Write the target loss of every prediction."""
    d, own = room.size // 2, params[2 : 2 + code[PARAMS]]
    target, encoded = room[:d], room[d:]
    for t in range(out.size):
        offset = call_encode(code[ENCODE], (labels[t], own, target))
        call_encode_loss(code[ENCODE_LOSS], (predictions[t], own, encoded))
        out[t] = max(0.0, dot(target, encoded) + offset)


class Vertices(NamedTuple):
    """What the kernels need of a task; see :attr:`Geometry.vertex_loss`."""

    code: np.ndarray
    params: np.ndarray
    size: int
    scratch: int

    @classmethod
    def of(cls, task: Any) -> Vertices | None:
        """Return it for a task whose predictions are vertices, None where they are not."""
        factors = task.geometry.vertex_loss
        if task.kernels is None or factors is None:
            return None
        hull, own = task.label_hull, task.params(task.dim)
        if hull.maximize_kernel is None:
            return None
        kernels = (*task.kernels, hull.maximize_kernel)
        code = np.array([*(kernel.address for kernel in kernels), len(own)], dtype=np.int64)
        params = np.array([*factors, *own, *hull.params], dtype=np.float64)
        return cls(code, params, task.dim, max(hull.scratch, task._scratch(task.dim)))

    def best(self, scores: np.ndarray, width: int) -> np.ndarray:
        """Return the predictions of highest score, a row each."""
        out = np.empty((len(scores), width), dtype=np.int64)
        room = np.empty(1 + 2 * self.size + self.scratch)
        room[0] = 0.5
        best(np.ascontiguousarray(scores, np.float64), self.code, self.params, room, out)
        return out

    def losses(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the target losses of predictions, all of which are checked, and so are labels."""
        out = np.empty(len(labels))
        losses(predictions, labels, self.code, self.params, np.empty(2 * self.size), out)
        return out

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the best predictions for mean encodings, a row each."""
        out = np.empty(predictions[0].shape, dtype=np.int64)
        room = np.empty(2 + 4 * self.size + self.scratch)
        room[0], room[1] = 0.5, self.size
        rows = np.array(predictions, dtype=np.int64)
        weights = np.ascontiguousarray(weights, np.float64)
        average(rows, weights, self.code, self.params, room, out)
        return out


class ManyVertices(Many):
    """Many predictions that are vertices: compiled, where the task and its polytope are."""

    def losses(self, rows: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the target losses of many predictions; refuse rows that are not predictions."""
        found, space = Vertices.of(self.task), self.task.predictions
        if found is None:
            return super().losses(rows, labels)
        known = np.asarray(space.check_all(space.values(rows)))
        return found.losses(known, np.ascontiguousarray(labels, dtype=np.int64))

    def top(self, scores: np.ndarray) -> np.ndarray:
        """Return the labels of the best vertices, a row of integers for each row of scores."""
        found = Vertices.of(self.task)
        if found is None or not np.isfinite(scores).all():
            return super().top(scores)
        return found.best(scores, self.task.predictions.size)

    def average(self, predictions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the best labels for mean encodings of the members' labels, a row each."""
        found = Vertices.of(self.task)
        if found is None:
            return super().average(predictions, weights)
        return found.average(predictions, weights)
