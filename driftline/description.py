"""A learner in words: which theorem applies, with which constants, and what is missing."""

from __future__ import annotations

import math
from typing import Any

from driftline.engines import Parts
from driftline.losses import ConvolutionalFenchelYoung, Hinge, Scaled
from driftline.rates import AdaGrad, Constant, Polyak
from driftline.tasks import Sequence

__all__ = ["describe"]


def describe(parts: Parts, largest_input: float) -> str:
    """Return the description of a learner made of these parts."""
    loss, decoder, rate, domain, *_ = parts
    lines = [
        f"task     {loss.task!r}, {_scores(loss.task)}",
        f"loss     {loss!r}, self-bounding with M = {loss.self_bound:.4g}",
        f"decoder  {type(decoder).__name__}, {_gap(parts)}",
        f"rate     {rate!r}, {_range(parts)}",
        f"domain   {domain!r}",
        f"bound    {_bound(parts)}",
    ]
    if parts.restart is not None:
        lines.append(
            f"restart  {parts.restart!r}: starts again from no weights at an alarm; every start "
            "pays for its first distance again"
        )
    if largest_input > 1.0 + 1e-9:
        lines.append(
            f"inputs   the longest so far has norm {largest_input:.4g}: the floor is divided by "
            f"its square, {largest_input**2:.4g}"
        )
    if not parts.have_kernels:
        lines.append(
            f"speed    {', '.join(_plain(parts))} without kernels: rounds are played in plain "
            "Python"
        )
    return "\n".join(lines)


def _scores(task: Any) -> str:
    if isinstance(task, Sequence):
        return "as many scores as positions and transitions need"
    if task.ragged:
        return "a score for every item"
    return f"{task.dim} score{'s' if task.dim > 1 else ''}"


def _gap(parts: Parts) -> str:
    decoder = parts.decoder
    kind = "deterministic" if decoder.deterministic else "random"
    words = f"{kind}, surrogate gap alpha = {decoder.surrogate_gap:.4g}"
    if hasattr(decoder, "kappa"):
        words += f" (kappa = {decoder.kappa:.4g})"
    words += f", rate floor {decoder.rate_floor:.4g}"
    if decoder.numerical_rate_floor is not None:
        words += f" (found numerically: {decoder.numerical_rate_floor:.4g})"
    return words


def _range(parts: Parts) -> str:
    rate, floor = parts.rate, parts.decoder.rate_floor
    if not floor > 0.0:
        return "with no admissible range to stay in"
    if isinstance(rate, Polyak):
        return "admissible in every round" + ("" if rate.monotone else ", not monotone")
    if isinstance(rate, AdaGrad):
        return "which need not be admissible"
    if isinstance(rate, Constant):
        eta = rate.params(parts.setting)[0]
        norm = _longest(parts, eta)
        if norm >= rate.input_norm * (1 - 1e-12):
            return f"eta = {eta:.4g}, admissible up to norm {norm:.4g} of {_input(parts)}"
        return f"eta = {eta:.4g}, above the floor and so not always admissible"
    return "whose range is not known"


def _longest(parts: Parts, eta: float) -> float:
    """Return the norm up to which inputs leave a step admissible."""
    return math.sqrt(parts.decoder.rate_floor / eta)


def _input(parts: Parts) -> str:
    """Say what the norm is one of, where that is not simply the row of a round."""
    task = parts.loss.task
    if isinstance(task, Sequence) and task.transitions:
        return "a sequence, whose square is (2n - 1) max(n - 1, |x|^2) for n positions"
    if isinstance(task, Sequence):
        return "a position" + (" with the constant 1" if parts.intercept else "")
    if task.ragged:
        return "all documents of a query together"
    return "an input" + (" with the constant 1" if parts.intercept else "")


def _bound(parts: Parts) -> str:
    """Say the theorem, or why there is none."""
    loss, decoder, rate, domain, *_ = parts
    family = loss.loss if isinstance(loss, Scaled) else loss
    if isinstance(family, Hinge):
        return f"none: the hinge loss is {family.caveat}"
    if not loss.convex:
        return "none: the loss is not convex"
    if not decoder.rate_floor > 0.0:
        return "none: loss and decoder have no surrogate gap"
    if not math.isfinite(domain.diameter):
        return "none beforehand: the domain is unbounded; a run can still be certified"
    if parts.restart is not None:
        return (
            "none beforehand: the learner starts again, and what that costs is not bounded; a run "
            "can be certified"
        )
    if isinstance(rate, Constant):
        eta = rate.params(parts.setting)[0]
        norm, given = _longest(parts, eta), rate.input_norm
        if norm < given * (1 - 1e-12):
            return (
                f"none beforehand: {rate!r} may leave the admissible range; a run can be certified"
            )
        return f"{_total(parts, eta)} up to norm {norm:.4g} of {_input(parts)}, by {_source(parts)}"
    if not isinstance(rate, Polyak):
        return _left(rate)
    eta, plain = decoder.rate_floor, _input(parts) == "an input"
    if not rate.monotone:
        where = "for inputs up to norm 1" if plain else f"over B^2, {_largest(parts)}"
        return (
            f"sum of eta_t E[loss_t] <= sum of eta_t L_t(U_t) + {domain.diameter:g} "
            f"({domain.diameter / 2:g} + P_T), with eta_t >= {eta:.4g} {where}"
        )
    if plain:
        return f"{_total(parts, eta)} for inputs up to norm 1, by {_source(parts)}"
    return f"{_total(parts, eta, 'B^2 ')}, {_largest(parts)}, by {_source(parts)}"


def _left(rate: Any) -> str:
    return f"none beforehand: {rate!r} may leave the admissible range; a run can be certified"


def _total(parts: Parts, eta: float, factor: str = "") -> str:
    """Say the bound for steps of this size at least, times a factor."""
    diameter = parts.domain.diameter
    price = f"{diameter**2 / (2.0 * eta):.5g} + {diameter / eta:.5g} P_T"
    return f"E[total target loss] <= F_T + {f'{factor}({price})' if factor else price}"


def _largest(parts: Parts) -> str:
    return f"B >= 1 the largest norm of {_input(parts)}"


def _source(parts: Parts) -> str:
    """Name the theorem."""
    if isinstance(parts.loss, ConvolutionalFenchelYoung):
        return "theorem 2 (convolutional)"
    return "theorem 1 (surrogate gap)" if parts.decoder.surrogate_gap > 0.0 else "its rate floor"


def _plain(parts: Parts) -> list[str]:
    """Name the parts without kernels."""
    loss, decoder, rate, domain, *_ = parts
    have = {
        "task": loss.task.kernels,
        "loss": loss.kernels,
        "decoder": decoder.kernel,
        "rate": rate.kernel,
        "domain": domain.radius,
    }
    if parts.restart is not None:
        have["detector"] = parts.restart.kernel
    return [name for name, kernel in have.items() if kernel is None]
