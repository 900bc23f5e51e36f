"""A learner in words: which theorem applies, with which constants, and what is missing."""

from __future__ import annotations

import math
from typing import NamedTuple

from driftline.engines import Parts
from driftline.kernels import COMPILES, MISSING
from driftline.rates import StepRange

__all__ = ["AprioriBound", "describe", "no_theorem", "apriori_bound"]


class AprioriBound(NamedTuple):
    r"""The bound that a theorem gives before the first round.

    For every comparator in the domain, with losses :math:`F_T` and path length :math:`P_T`, and
    rows of norms up to B (times the root of their sample weights, if these are not 1), the expected
    target losses add up to at most

    .. math:: s F_T + \frac D{\underline\eta} \Big( \frac D2 + P_T \Big),

    where :math:`\underline\eta` is the least step on such rows, and s is 1 for rates that never
    grow, the largest step over the least one for others. Constant and free rates from the centre
    of the domain pay a quarter for the start, :math:`D^2 / (8 \underline\eta)`.

    >>> import driftline as dl
    >>> made = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(10))).facts.apriori_bound
    >>> [round(made.total(1000.0, path), 1) for path in (0.0, 10.0)]
    [1235.0, 1470.0]
    """

    diameter: float
    steps: StepRange
    theorem: str
    #: The rows whose norms are meant, in words.
    rows: str
    #: A bound of the norm of rows, infinite if none is known beforehand.
    longest: float = math.inf
    #: The largest distance of a comparator to the first weights; None for the diameter.
    first: float | None = None

    def prices(self, norm: float = 1.0) -> tuple[float, float, float]:
        """Return s, and the costs of a start and of a path of length 1, for rows up to a norm."""
        if norm**2 > self.steps.norm**2 * (1.0 + 1e-12):
            return math.inf, math.inf, math.inf
        least = self.steps.least(norm**2)
        spread = 1.0 if self.steps.monotone else self.steps.most / least
        first = self.diameter if self.first is None else self.first
        start = self.steps.start(self.diameter, first, least)
        return spread, start, self.diameter / least

    def total(self, comparator_loss: float, path_length: float, norm: float = 1.0) -> float:
        """Return the bound of the total loss, against a comparator, on rows up to a norm."""
        spread, start, path = self.prices(norm)
        return spread * comparator_loss + start + path * path_length


def apriori_bound(parts: Parts, first: float, longest: float = math.inf) -> AprioriBound | None:
    """Return the bound that a theorem gives for a learner of these parts, None if none does."""
    if no_theorem(parts) or not parts.loss.convex or parts.restart is not None:
        return None
    if not math.isfinite(parts.domain.diameter):
        return None
    steps = parts.rate.step_range(parts.setting)
    diameter, theorem = parts.domain.diameter, parts.decoder.theorem
    return AprioriBound(diameter, steps, theorem, _input(parts), longest, first)


def describe(parts: Parts, largest_input: float, first: float) -> str:
    """Return the description of a learner of these parts, and of this first distance."""
    loss, decoder, rate, domain, *_ = parts
    lines = [
        f"task     {parts.task!r}, {parts.task.geometry.scores_in_words}",
        f"loss     {loss!r}, self-bounding with M = {loss.self_bound:.4g}",
        f"decoder  {type(decoder).__name__}, {_gap(parts)}",
        f"rate     {rate!r}, {_range(parts)}",
        f"domain   {domain!r}",
        f"bound    {_bound(parts, first)}",
    ]
    if parts.restart is not None:
        lines.append(
            f"restart  {parts.restart!r}: starts again from no weights at an alarm; every start "
            "pays for its first distance again"
        )
    if largest_input > 1.0 + 1e-9:
        lines.append(
            f"inputs   the longest so far, times the root of its sample weight, has norm "
            f"{largest_input:.4g}: the floor is divided by its square, {largest_input**2:.4g}"
        )
    if not parts.have_kernels:
        lines.append(
            f"speed    {', '.join(_plain(parts))} without kernels: rounds are played in plain "
            "Python"
        )
    elif not COMPILES:
        lines.append(f"speed    no Numba ({MISSING}): rounds are played in plain Python")
    return "\n".join(lines)


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
    steps = parts.rate.step_range(parts.setting)
    if not parts.decoder.rate_floor > 0.0:
        return "with no admissible range to stay in"
    if not steps.norm > 0.0:
        return "which need not be admissible"
    if math.isfinite(steps.norm):
        one = f"eta = {steps.most:.4g}, " if math.isinf(steps.floor) else ""
        return f"{one}admissible up to norm {steps.norm:.4g} of {_input(parts)}"
    return "admissible in every round" + ("" if steps.monotone else ", not monotone")


def _input(parts: Parts) -> str:
    """Say which norm is meant."""
    return parts.task.layout.norm_in_words(parts.intercept)


def no_theorem(parts: Parts, largest_input: float = 0.0) -> str:
    """Say why no theorem bounds the total of inputs up to a norm beforehand, "" if one does."""
    rate, steps = parts.rate, parts.rate.step_range(parts.setting)
    if parts.loss.caveat:
        return f"the loss is {parts.loss.caveat}"
    if not parts.decoder.rate_floor > 0.0:
        return "loss and decoder have no surrogate gap"
    if not steps.norm > 0.0:
        return f"{rate!r} may leave the admissible range"
    if largest_input**2 > steps.norm**2 * (1.0 + 1e-12):
        return (
            f"{rate!r} is admissible up to norm {steps.norm:.4g} of {_input(parts)}, and the "
            f"longest so far has norm {largest_input:.4g}"
        )
    if not steps.least(1.0) > 0.0:
        return f"steps of {rate!r} may be as small as they like"
    if not steps.monotone and math.isinf(steps.most):
        return f"steps of {rate!r} may grow, and have no cap"
    return ""


def _bound(parts: Parts, first: float) -> str:
    """Return the bound of the theorem in words, or why there is none."""
    reason, diameter = no_theorem(parts), parts.domain.diameter
    if not parts.decoder.rate_floor > 0.0 or parts.loss.caveat:
        return f"none: {reason}"
    if not math.isfinite(diameter):
        reason = "the domain is unbounded"
    elif parts.restart is not None:
        reason = "the learner starts again, and what that costs is not bounded"
    if reason:
        return f"none beforehand: {reason}; a run can be certified"
    steps, named = parts.rate.step_range(parts.setting), _input(parts)
    norm, over, where = steps.norm, "", ""  # where the least step falls with the input
    if math.isfinite(norm):
        where = f" up to norm {norm:.4g} of {named}"
    elif named == "an input":
        norm = max(1.0, math.sqrt(steps.floor / steps.most))
        where = f" for inputs up to norm {norm:.4g}"
    else:
        norm, over, where = 1.0, "B^2", f", B >= 1 the largest norm of {named}"
    eta = steps.least(norm**2)
    capped = f"min({steps.floor:.4g} / B^2, {eta:.4g})" if over and eta < steps.floor else ""
    if not steps.monotone:
        least = capped or f"{eta:.4g}" + (f" over {over}" if over else "")
        return (
            f"sum of eta_t E[loss_t] <= sum of eta_t L_t(U_t) + {diameter:g} "
            f"({first**2 / (2.0 * diameter):g} + P_T), with eta_t >= {least}{where}"
        )
    unit = 1.0 if capped else eta
    start = diameter**2 / 2.0 if capped else steps.start(diameter, first, eta)
    price = f"{start:.5g} + {diameter / unit:.5g} P_T"
    price = f"({price}) / {capped}" if capped else f"{over} ({price})" if over else price
    return f"E[total target loss] <= F_T + {price}{where}, by {parts.decoder.theorem}"


def _plain(parts: Parts) -> list[str]:
    """Name the parts without kernels."""
    loss, decoder, rate, domain, *_ = parts
    have = {
        "task": parts.task.kernels,
        "loss": loss.kernels,
        "decoder": decoder.kernel,
        "rate": rate.kernel,
        "domain": domain.radius,
    }
    if parts.restart is not None:
        have["detector"] = parts.restart.kernel
    return [name for name, kernel in have.items() if kernel is None]
