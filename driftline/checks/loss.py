"""The laws of losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftline.checks.base import labels_of, law, scores
from driftline.losses import Loss
from driftline.typing import Label

__all__ = ["check_loss"]


def check_loss(
    loss: Loss,
    labels: Sequence[Label] | None = None,
    *,
    size: int | None = None,
    trials: int = 100,
    seed: int = 0,
) -> None:
    """Check a loss: its range, its gradient, its convexity and its self-bounding constant.

    Parameters
    ----------
    labels
        Labels to try. Default: all of them, where the task names them.
    size
        The number of scores. Default: the task's, where it has one.

    Examples
    --------
    >>> import driftline as dl
    >>> check_loss(dl.losses.Logistic(dl.tasks.Multiclass(4)))
    """
    task = loss.task
    labels = labels_of(task, labels)
    dim = task.geometry.size_of(task.labels.check(labels[0])) if size is None else size
    generator = np.random.default_rng(seed)
    slack = 1e-6 if loss.inexact else 1e-9
    _check_factor(loss, np.linspace(-1.0, 1.0, dim), labels)
    law(loss.self_bound > 0.0, "self_bound is positive, infinite if unknown", M=loss.self_bound)
    for theta in scores(dim, trials, generator):
        for label in labels:
            value, grad = loss.value_and_grad(theta, label)
            seen = {"theta": theta, "label": label}
            law(0.0 <= value < np.inf, "losses are finite and not negative", **seen, loss=value)
            law(grad.shape == (dim,), "the gradient has an entry for every score", **seen)
            law(np.isfinite(grad).all(), "the gradient is finite", **seen, gradient=grad)
            most = 2.0 * loss.self_bound * value
            law(
                not np.isfinite(loss.self_bound) or grad @ grad <= most * (1.0 + 1e-9) + slack,
                "|gradient|^2 <= 2 self_bound loss",
                **seen,
                square=grad @ grad,
                bound=most,
            )
            other = theta + generator.choice([1e-3, 0.1, 3.0]) * generator.standard_normal(dim)
            there, _ = loss.value_and_grad(other, label)
            if loss.convex:
                tangent = value + grad @ (other - theta)
                far = float(np.abs(grad) @ np.abs(other - theta))
                law(
                    there >= tangent - slack * (1.0 + abs(tangent) + far),
                    "a convex loss lies above its tangents, so the gradient is one",
                    **seen,
                    other=other,
                    loss=there,
                    tangent=tangent,
                )
            else:
                _check_slope(loss, theta, label, grad)


def _check_factor(loss: Loss, theta: np.ndarray, labels: Sequence[Label]) -> None:
    """Check that doubling the first parameter of the kernels doubles the loss."""
    if loss.kernels is None:
        return
    words = "params[0] is a factor of the whole loss, its gradient and its values"
    task, theta = loss.task, loss.task.geometry.folded(theta)
    once, made = np.array(loss.params(theta.size), dtype=np.float64), []
    for params in (once, np.r_[2.0 * once[0], once[1:]]):
        numbers, work = list[float](), np.empty(loss.workspace(theta.size))
        for label in labels:
            grad, target = np.empty_like(theta), np.empty_like(theta)
            if task.kernels is None:
                target = task.encode(label)
            else:
                own = np.asarray(task.params(theta.size), dtype=np.float64)
                task.kernels.encode(task.labels.check(label), own, target)
            value = loss.kernels.loss(theta, target, params, work, grad)
            numbers += [value, *grad]
        if loss.kernels.values is not None:
            values, squares = np.empty((2, len(loss.task.labels.all)))
            loss.kernels.values(theta, params, work, values, squares)
            numbers += [*values, *np.sqrt(squares)]
        made.append(np.array(numbers))
    law(np.allclose(made[1], 2.0 * made[0], atol=1e-12), words, once=made[0], twice=made[1])


def _check_slope(loss: Loss, theta: np.ndarray, label: Label, grad: np.ndarray) -> None:
    """Compare the gradient with differences, unless the loss states a kink or a jump nearby."""
    direction, h = np.cos(np.arange(theta.size) + 1.0), 1e-5
    if any(abs(kink) < 10.0 * h for kink in loss.kinks(theta, label)):
        return
    ends = [loss.value_and_grad(theta + s * h * direction, label)[0] for s in (-1.0, 1.0)]
    slope = (ends[1] - ends[0]) / (2.0 * h)
    law(
        abs(slope - grad @ direction) <= 1e-3 * (1.0 + abs(slope)),
        "the gradient is the slope of the loss, away from its kinks",
        theta=theta,
        label=label,
        gradient=grad @ direction,
        slope=slope,
    )
