r"""The best comparators in hindsight.

Any comparator in the domain gives a valid certificate; one with a small surrogate loss gives a
tight one. Fits minimise the total surrogate loss over the ball by accelerated projected gradient
steps, with a bound of their error: for a convex f on a ball of radius R,
:math:`f(U) - \min f \le \langle \nabla f(U), U \rangle + R \|\nabla f(U)\|`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftline.comparators import Fixed, Piecewise
from driftline.comparators.checking import Comparator
from driftline.domains import Ball, Domain
from driftline.engines import Totals
from driftline.errors import InputError
from driftline.losses import Loss
from driftline.typing import Inputs, Labels

__all__ = ["Hindsight", "best_fixed", "best_piecewise", "surrogate_losses"]


class Hindsight(NamedTuple):
    """A comparator found in hindsight.

    ``loss`` is its total surrogate loss; no weights in the ball (no weights with the same change
    points) have one smaller by more than ``gap``. ``method`` says how change points were chosen.
    """

    comparator: Piecewise
    loss: float
    gap: float
    method: str


class Fit(NamedTuple):
    """Weights for some rounds, their loss, and how much smaller it could be."""

    weights: np.ndarray
    loss: float
    gap: float


class Problem:
    """A stream and a loss to be fitted inside a ball."""

    def __init__(self, loss: Loss, inputs: Inputs, labels: Labels, domain: Domain, intercept: bool):
        if domain.radius is None or not math.isfinite(domain.radius):
            raise InputError(f"fits need a ball to lie in, not {domain!r}")
        if not loss.convex:
            raise InputError(f"{loss!r} is not convex: its best weights cannot be found")
        task = loss.task
        self.rows, self.labels = task.layout.rows(inputs), task.labels.check_all(labels)
        if self.rows.rounds != len(self.labels):
            raise InputError(f"there are {self.rows.rounds} inputs but {len(self.labels)} labels")
        self.radius = float(domain.radius)
        columns = self.rows.features + intercept + task.layout.extra_columns
        self.shape = (task.layout.weight_rows, columns)
        self.totals = Totals(loss, intercept)

    def total(self, weights: np.ndarray, start: int, stop: int) -> tuple[float, np.ndarray]:
        """Return the loss of weights on some rounds, and its gradient."""
        return self.totals.over(self.rows, start, stop, self.labels[start:stop], weights)

    def fit(
        self,
        start: int,
        stop: int,
        first: np.ndarray | None = None,
        tolerance: float = 1e-3,
        passes: int = 500,
    ) -> Fit:
        """Return the best weights for some rounds, to a share of their loss or to 0.01."""
        here = np.zeros(self.shape) if first is None else first.copy()
        value, gradient = self.total(here, start, stop)
        best = Fit(here, value, self._gap(here, gradient))
        ahead, momentum, smoothness = here, 1.0, max(1.0, 0.05 * (stop - start))
        for _ in range(passes):
            if best.gap <= max(0.01, tolerance * best.loss):
                return best
            at_ahead, slope = self.total(ahead, start, stop)
            while smoothness < 1e6 * (stop - start):
                there = self._project(ahead - slope / smoothness)
                move = there - ahead
                value, gradient = self.total(there, start, stop)
                model = at_ahead + float(np.vdot(slope, move))
                if value <= model + 0.5 * smoothness * float(np.vdot(move, move)) + 1e-12 * value:
                    break
                smoothness *= 2.0
            else:  # a kink between the two points
                return self._around_kinks(best, start, stop, tolerance, passes)
            gap = self._gap(there, gradient)
            if value < best.loss or gap < best.gap:
                best = Fit(there, value, gap)
            later = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
            if float(np.vdot(ahead - there, there - here)) > 0.0:  # uphill: restart the momentum
                ahead, momentum = there, 1.0
            else:
                ahead = self._project(there + (momentum - 1.0) / later * (there - here))
                momentum = later
            here, smoothness = there, 0.9 * smoothness
        return best

    def _around_kinks(self, best: Fit, start: int, stop: int, tolerance: float, passes: int) -> Fit:
        """Minimise a loss that is not smooth by subgradient steps towards an estimated minimum.

        The average of the supporting planes of all points so far bounds the minimum from below.
        """
        here, lower = best.weights, best.loss - best.gap
        mean_slope, mean_height = np.zeros(self.shape), 0.0
        for count in range(1, 4 * passes + 1):
            value, slope = self.total(here, start, stop)
            share = 2.0 / (count + 1.0)
            mean_slope += share * (slope - mean_slope)
            mean_height += share * (value - float(np.vdot(slope, here)) - mean_height)
            lower = max(lower, mean_height - self.radius * float(np.linalg.norm(mean_slope)))
            if value < best.loss:
                best = Fit(here, value, value - lower)
            best = best._replace(gap=best.loss - lower)
            length = float(np.vdot(slope, slope))
            if best.gap <= max(0.01, tolerance * best.loss) or length == 0.0:
                break
            goal = best.loss - max(0.02, 1.0 / count) * best.gap
            here = self._project(here - (value - goal) / length * slope)
        return best

    def _project(self, weights: np.ndarray) -> np.ndarray:
        norm = float(np.linalg.norm(weights))
        return weights if norm <= self.radius else weights * (self.radius / norm)

    def _gap(self, weights: np.ndarray, gradient: np.ndarray) -> float:
        length = self.radius * float(np.linalg.norm(gradient))
        return max(0.0, float(np.vdot(gradient, weights)) + length)


def surrogate_losses(
    comparator: Comparator,
    loss: Loss,
    inputs: Inputs,
    labels: Labels = None,
    *,
    intercept: bool = False,
) -> np.ndarray:
    """Return the surrogate loss of a comparator in every round of a stream; F_T is their sum.

    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=100, flips=1, seed=0)
    >>> losses = surrogate_losses(stream.comparator, dl.losses.SmoothHinge(stream.task), stream)
    >>> losses.shape, bool(losses.max() <= 1.0)
    ((100,), True)
    """
    if labels is None:
        inputs, labels = inputs.inputs, inputs.labels
    task = loss.task
    rows, checked = task.layout.rows(inputs), task.labels.check_all(labels)
    if rows.rounds != len(checked):
        raise InputError(f"there are {rows.rounds} inputs but {len(checked)} labels")
    losses, start = np.empty(rows.rounds), 0
    for weights, stop in comparator.pieces(0, rows.rounds):
        for t in range(start, stop):
            theta = rows.scores(weights, False, t, intercept)
            losses[t] = loss.value_and_grad(theta, task.labels.value(checked[t]))[0]
        start = stop
    return losses


def best_fixed(
    loss: Loss,
    inputs: Inputs,
    labels: Labels = None,
    domain: Domain | None = None,
    *,
    intercept: bool = False,
    tolerance: float = 1e-3,
) -> Hindsight:
    """Return the weights of least total surrogate loss on a stream.

    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=500, flips=0, seed=0)
    >>> found = best_fixed(dl.losses.Logistic(stream.task), stream, domain=dl.domains.Ball(20.0))
    >>> found.gap <= 1e-3 * found.loss, round(found.comparator.largest_norm, 3)
    (True, 10.0)
    """
    problem = _problem(loss, inputs, labels, domain, intercept)
    found = problem.fit(0, problem.rows.rounds, None, tolerance)
    return Hindsight(Fixed(found.weights), found.loss, found.gap, "one piece")


def best_piecewise(
    loss: Loss,
    inputs: Inputs,
    labels: Labels = None,
    domain: Domain | None = None,
    *,
    segments: int | None = None,
    penalty: float | None = None,
    candidates: int | Sequence[int] | np.ndarray = 50,
    step: float | None = None,
    intercept: bool = False,
    tolerance: float = 1e-3,
    progress: Callable[[int, int], None] | None = None,
) -> Hindsight:
    """Return weights that change at the best of some candidate rounds.

    Dynamic programming over all ways to cut the stream at candidates. The cost of a piece is the
    loss of its best weights, fitted by a few steps from those of a shorter piece; then the chosen
    pieces are fitted to ``tolerance``.

    Parameters
    ----------
    segments, penalty
        How many pieces, or what a further piece must save; one of the two.
    candidates
        Rounds at which weights may change, or how many of them, equally spaced.
    step
        A lower bound of the learner's steps. With it, weights minimise the bound and not the loss:
        loss, ``|U_1|^2 / (2 step)`` and the diameter times the path over the step. Change points
        are the same as without it.
    progress
        A callback that is given the number of pieces fitted so far and in all.
    """
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise InputError(f"a step must be positive, but is {step}")
    if (segments is None) == (penalty is None):
        raise InputError("say either how many segments there are or the penalty of each")
    problem = _problem(loss, inputs, labels, domain, intercept)
    edges = _edges(candidates, problem.rows.rounds)
    count = len(edges) - 1
    if segments is not None and not 1 <= segments <= count:
        raise InputError(f"{count} candidate pieces cannot make {segments} segments")
    cuts, method = list(range(count + 1)), "all candidates, of which there are no more"
    if segments != count:
        costs = _costs(problem, edges, progress)
        cuts = _cut(costs, segments, penalty or 0.0)
        method = f"dynamic programming over {count - 1} candidate rounds"
    fits = [
        problem.fit(edges[a], edges[b], None, tolerance)
        for a, b in zip(cuts[:-1], cuts[1:], strict=True)
    ]
    starts, weights = [edges[c] for c in cuts], np.array([fit.weights for fit in fits])
    total = sum(fit.loss for fit in fits)
    least = total - sum(fit.gap for fit in fits)
    if step is not None:
        weights, total = _tightened(problem, starts, weights, step)
        method += ", then for the least bound"
    return Hindsight(Piecewise(starts[:-1], weights), total, total - least, method)


def _tightened(
    problem: Problem, starts: list[int], weights: np.ndarray, step: float
) -> tuple[np.ndarray, float]:
    """Return weights between the same change points with a smaller bound, and their loss.

    The bound is minimised by a quasi-Newton method, with the kinks of the path length smoothed.
    Weights outside the ball are projected, which makes no path longer. The result is used only if
    it is better.
    """
    from scipy.optimize import minimize

    price, kink = 2.0 * problem.radius / step, 1e-4 * problem.radius
    pieces = list(zip(starts[:-1], starts[1:], strict=True))

    def bound(flat: np.ndarray, kink: float = 0.0) -> tuple[float, np.ndarray, float]:
        here = flat.reshape(weights.shape)
        totals = [problem.total(w, *piece) for w, piece in zip(here, pieces, strict=True)]
        slopes, loss = np.array([slope for _, slope in totals]), sum(value for value, _ in totals)
        moves = np.diff(here, axis=0)
        lengths = np.sqrt((moves**2).sum(axis=(1, 2), keepdims=True) + kink**2)
        slopes[0] += here[0] / step
        pulls = price * moves / np.maximum(lengths, 1e-300)
        slopes[1:] += pulls
        slopes[:-1] -= pulls
        rest = float((here[0] ** 2).sum()) / (2.0 * step) + price * float(lengths.sum())
        return loss + rest, slopes.ravel(), loss

    found = minimize(
        lambda flat: bound(flat, kink)[:2], weights.ravel(), jac=True, method="L-BFGS-B"
    )
    better = np.array([problem._project(w) for w in found.x.reshape(weights.shape)])
    if bound(better.ravel())[0] < bound(weights.ravel())[0]:
        weights = better
    return weights, float(bound(weights.ravel())[2])


def _costs(
    problem: Problem, edges: list[int], progress: Callable[[int, int], None] | None
) -> np.ndarray:
    """Return the loss of the best weights for every piece, each from those of a shorter one."""
    count = len(edges) - 1
    costs = np.full((count, count + 1), math.inf)
    done = 0
    for i in range(count):
        weights: np.ndarray | None = None
        for j in range(i + 1, count + 1):
            fit = problem.fit(edges[i], edges[j], weights, 0.02, 6)
            weights, costs[i, j] = fit.weights, fit.loss
            done += 1
            if progress is not None:
                progress(done, count * (count + 1) // 2)
    return costs


def _problem(
    loss: Loss, inputs: Inputs, labels: Labels, domain: Domain | None, intercept: bool
) -> Problem:
    if labels is None:
        inputs, labels = inputs.inputs, inputs.labels
    return Problem(loss, inputs, labels, Ball(20.0) if domain is None else domain, intercept)


def _edges(candidates: Any, rounds: int) -> list[int]:
    if np.ndim(candidates) == 0:
        wanted = np.linspace(0, rounds, int(candidates) + 2).astype(int)
    else:
        wanted = np.r_[0, np.asarray(candidates, dtype=int), rounds]
    edges = np.unique(wanted).tolist()
    if edges[0] < 0 or edges[-1] > rounds:
        raise InputError(f"candidate rounds must lie in 0..{rounds}, but are {wanted.tolist()}")
    return edges


def _cut(costs: np.ndarray, segments: int | None, penalty: float) -> list[int]:
    """Return the cuts of the cheapest way into so many pieces; into any number, if None.

    Each piece costs ``penalty`` more. ``best[k]`` has the costs up to each candidate in k pieces,
    or in any number of them.
    """
    count = len(costs)
    rows = 1 if segments is None else segments + 1
    best, came = np.full((rows, count + 1), math.inf), np.zeros((rows, count + 1), dtype=int)
    best[0, 0] = 0.0
    for k in range(0 if segments is None else 1, rows):
        before = best[k if segments is None else k - 1]
        for j in range(1, count + 1):
            options = before[:j] + costs[:j, j] + penalty
            came[k, j] = int(np.argmin(options))
            best[k, j] = options[came[k, j]]
    cuts, k = [count], rows - 1
    while cuts[0] > 0:
        cuts.insert(0, int(came[k, cuts[0]]))
        k -= segments is not None
    return cuts
