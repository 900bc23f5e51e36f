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
        if eta * rate.input_norm**2 <= floor * (1 + 1e-12):
            return f"eta = {eta:.4g}, admissible for inputs up to norm {rate.input_norm:g}"
        return f"eta = {eta:.4g}, above the floor and so not always admissible"
    return "whose range is not known"


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
    eta = rate.params(parts.setting)[0] if isinstance(rate, Constant) else decoder.rate_floor
    steady = isinstance(rate, Constant) and eta <= decoder.rate_floor * (1 + 1e-12)
    if not (steady or isinstance(rate, Polyak)):
        return f"none beforehand: {rate!r} may leave the admissible range; a run can be certified"
    half = domain.diameter**2 / (2.0 * eta)
    path = domain.diameter / eta
    if isinstance(rate, Polyak) and not rate.monotone:
        return (
            f"sum of eta_t E[loss_t] <= sum of eta_t L_t(U_t) + {domain.diameter:g} "
            f"({domain.diameter / 2:g} + P_T), with eta_t >= {eta:.4g} for inputs up to norm 1"
        )
    source = "theorem 1 (surrogate gap)" if decoder.surrogate_gap > 0.0 else "its rate floor"
    if isinstance(loss, ConvolutionalFenchelYoung):
        source = "theorem 2 (convolutional)"
    return (
        f"E[total target loss] <= F_T + {half:.5g} + {path:.5g} P_T for inputs up to norm 1, by "
        f"{source}"
    )


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
