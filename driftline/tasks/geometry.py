"""Where a task's encodings lie, and what the sizes of rounds have to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftline.parts import fact
from driftline.polytopes import Affine, Hull, Polytope
from driftline.typing import Label, Prediction

__all__ = ["Geometry"]


@dataclass(frozen=True)
class Geometry:
    """The hulls of a task's encodings, for rounds of every size; here, all have the same."""

    task: Any

    # -- what scores are of

    @fact
    def vertex_loss(self) -> tuple[float, float] | None:
        """Factor and shift by which a label's encoding becomes its loss encoding, if they do."""
        factor = getattr(self.task, "loss_factor", None)
        return None if factor is None else (factor, self.task._loss_shift)

    @fact
    def classes(self) -> int:
        """How many classes have a score each, or 2 if one score is that of a sign; else 0."""
        match self.task.answers.kind:
            case "classes":
                return self.task.dim
            case "sign":
                return 2
        return 0

    @fact
    def exclusive(self) -> int:
        """Of how many labels, one of which is right, scores give the probabilities; else 0."""
        return self.task.dim + 1 if self.task.kind == "levels" else self.classes

    @fact
    def tags(self) -> int:
        """How many tags have a score each, and are right or wrong one by one; else 0."""
        return self.task.dim if self.task.kind == "tags" else 0

    @fact
    def part_size(self) -> int:
        """How many entries of an encoding a part has, if the loss is a mean over parts; else 0.

        ``vertex_loss`` is then that of one part.
        """
        return 0

    @fact
    def pair_tags(self) -> int:
        """Of how many tags folded scores end with those of all pairs, see :meth:`folded`; else 0.

        These hold for every pair of neighbouring parts, and predictions cost nothing there.
        """
        return 0

    @fact
    def predicts_top(self) -> bool:
        """Whether to predict by the highest score makes sense, as where scores are of labels."""
        return self.task.zero_one or self.vertex_loss is not None

    @fact
    def loss_matrix(self) -> np.ndarray | None:
        """The loss of every label (row) and prediction (column), where both are listed."""
        return None

    def top_label(self, theta: np.ndarray) -> Label:
        """Return the label that has the highest score."""
        return self.task.answers.top_prediction(theta)

    # -- sizes

    def size_of(self, label: Label) -> int:
        """Return how many scores a round with this label has."""
        return self.task.dim

    def score_size(self, theta: np.ndarray) -> int:
        """Return how many scores there must be, given some scores."""
        return self.task.dim

    @fact
    def scores_in_words(self) -> str:
        """How many scores a round has."""
        if self.task.layout.ragged:
            return "a score for every item"
        return f"{self.task.dim} score{'s' if self.task.dim > 1 else ''}"

    def scratch(self, size: int) -> int:
        """Return how many numbers of scratch space drawing needs at ``size`` scores."""
        return self.task._scratch(size)

    def folded(self, scores: np.ndarray) -> np.ndarray:
        """Return scores, or a loss encoding, as kernels take them: by default all of them.

        Where some of them are always equal, kernels take these once, and encodings have their sums.
        """
        return scores

    def unfolded(self, scores: np.ndarray) -> np.ndarray:
        """Return all scores, from those that kernels take."""
        return scores

    # -- hulls

    def hull_of(self, theta: np.ndarray) -> Any:
        """Return the hull of encodings that scores of this size belong to."""
        return self.hull_at(np.size(theta))

    def hull_at(self, size: int) -> Polytope:
        """Return the hull of rounds whose scores are ``size`` numbers, as kernels take them."""
        return self.task.label_hull

    @property
    def loss_hull(self) -> Polytope:
        """The hull of all loss encodings, for the size of ``label_hull``."""
        return self.loss_hull_of(np.empty(self.task.label_hull.dim))

    def loss_hull_of(self, theta: np.ndarray) -> Polytope:
        """Return the hull of loss encodings that scores of this size belong to."""
        task = self.task
        if self.vertex_loss is not None:
            return Affine(task.label_hull, *self.vertex_loss)
        return Hull(task.dim, lambda v: task.encode_loss(task.best_prediction(-v)))

    # -- loss encodings

    def encode_loss(self, prediction: Prediction, size: int) -> np.ndarray:
        """Return the loss encoding of a prediction in a round with ``size`` scores."""
        return self.task.encode_loss(prediction)

    def loss_of_mean(self, mean: np.ndarray) -> np.ndarray:
        """Return the mean loss encoding of predicting a random label with this mean encoding."""
        assert self.vertex_loss is not None
        factor, shift = self.vertex_loss
        return factor * mean + shift if shift else factor * mean

    def idle(self, label: Label) -> bool:
        """Return whether rounds with this label have no loss and make no step."""
        return False
