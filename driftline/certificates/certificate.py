r"""A run's total beside its bounds.

For a comparator :math:`U_1, \dots, U_T` with losses :math:`F_T = \sum L_t(U_t)` and path length
:math:`P_T = \sum \|U_t - U_{t-1}\|`, in a domain of diameter D:

- *worst case*: the theorem's bound before the first round,
  :math:`F_T + \frac{D}{\underline\eta} (\frac D2 + P_T)` with :math:`\underline\eta` the rate floor
  over the largest squared input norm;
- *diameter*: with the steps that were taken,
  :math:`F_T + \frac{\|W_1 - U_1\|^2}{2 \eta_1} + \frac{D^2}2 \sum [\frac1{\eta_t} -
  \frac1{\eta_{t-1}}]_+ + D \sum \frac{\|U_t - U_{t-1}\|}{\eta_{t-1}} + \sum r_t`;
- *exact*: with the actual distances in place of D;
- *weighted*: :math:`\sum \eta_t \mathbb E \ell_t` against :math:`\sum \eta_t L_t(U_t)` and
  distances without steps.

The last three hold for any steps, and are accounts of a run, not predictions: the residuals
:math:`r_t` contain the run's own losses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from driftline.errors import InputError, NoGuaranteeError
from driftline.regret import Tally, Watched
from driftline.typing import Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMS", "Certificate", "Delayed", "Premises", "or_reason"]

FORMS = ("worst_case", "diameter", "exact", "weighted")


@dataclass(frozen=True)
class Premises:
    """The constants of the bounds: all that they depend on beside the rounds."""

    diameter: float
    floor: float
    guess_loss: float
    largest_loss: float
    #: What uniform guessing means for the task, in words.
    guess: str
    #: Whether the loss is convex; else no bound holds.
    convex: bool = True
    #: Why no theorem gives a bound beforehand, "" if one does.
    no_theorem: str = ""
    #: The factor of the comparator's loss in the bound, above 1 where steps may grow.
    spread: float = 1.0
    theorem: str = ""
    #: The relative precision of weights.
    precision: float = 2.0**-52
    #: What the first round pays less for its distance than a start from anywhere would.
    spared: float = 0.0
    #: Why nothing bounds the run, not even afterwards; "" if there are weights to compare.
    no_bound: str = ""


class Delayed(NamedTuple):
    """What is known of labels that came late.

    ``cost`` is how much more predictions have cost than they would have when their labels came;
    ``outstanding`` is how many labels have not come.
    """

    cost: float
    outstanding: int


class Audited(ABC):
    """What every certificate says of its bounds, and of what its audit found."""

    findings: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    @abstractmethod
    def trivial(self) -> float:
        """The loss of uniform guessing: a bound above it is vacuous."""

    @abstractmethod
    def bounds(self) -> dict[str, float | str]:
        """Return every bound of the expected total, or why there is none."""

    @property
    @abstractmethod
    def broken(self) -> list[str]:
        """The bounds that are exceeded by more than rounding: there should be none."""

    @property
    def vacuous(self) -> dict[str, bool]:
        """Whether each bound is no better than the loss of uniform guessing."""
        given = self.bounds().items()
        return {form: value >= self.trivial for form, value in given if isinstance(value, float)}

    @property
    def valid(self) -> bool:
        """Whether the expected total lies below every bound, and the audit found nothing."""
        return not self.broken and not self.findings

    def audit_lines(self) -> list[str]:
        """Return what was found and what was not checked, a line each."""
        found = [*self.findings, *(f"the bound {form!r} is exceeded" for form in self.broken)]
        lines = [f"audit: {finding}" for finding in found or ["nothing to object to"]]
        return lines + [f"not checked: {note}" for note in self.unchecked]


@dataclass(frozen=True)
class Certificate(Audited):
    """Totals and bounds over some rounds; print it for a table.

    ``expected`` is the sum of expected target losses, ``sampled`` that of the predictions made.
    ``findings`` are what the audit found: where the replayed run differs from the recorded one, and
    steps that were not admissible. ``unchecked`` lists what could not be checked.
    """

    start: int
    stop: int
    tally: Tally
    premises: Premises
    findings: tuple[str, ...] = ()
    chance: float = 0.05
    rounds_seen: Watched | None = field(default=None, repr=False)
    unchecked: tuple[str, ...] = ()
    delayed: Delayed | None = None

    # -- totals

    @property
    def rounds(self) -> int:
        """How many rounds."""
        return self.tally.rounds

    @property
    def expected(self) -> float:
        """The total expected target loss."""
        return self.tally.risk

    @property
    def sampled(self) -> float:
        """The total target loss of the predictions that were made."""
        return self.tally.sampled

    @property
    def comparator_loss(self) -> float:
        """F_T, the comparator's surrogate loss."""
        return self.tally.comparator_loss

    @property
    def path_length(self) -> float:
        """P_T, how far the comparator moved."""
        return self.tally.path_length

    @property
    def surrogate_regret(self) -> float:
        """The expected target loss minus the comparator's surrogate loss."""
        return self.expected - self.comparator_loss

    @property
    def trivial(self) -> float:
        """The loss of uniform guessing: a bound above it is vacuous."""
        return self.premises.guess_loss * self.tally.weight

    # -- bounds

    @property
    def worst_case(self) -> float:
        """The theorem's bound before the first round, with the price of every restart added."""
        made, theirs = self.premises, self.comparator_loss
        if made.no_theorem and not (math.isinf(made.spread) and theirs + self.tally.gap == 0.0):
            raise NoGuaranteeError(f"no theorem bounds this run beforehand: {made.no_theorem}")
        self._need_convexity()
        if not math.isfinite(made.diameter):
            raise InputError(
                "the worst case needs a bounded domain; `exact` and `weighted_bound` do not"
            )
        starts = 1 + self.tally.restarts
        price = made.diameter * (starts * made.diameter / 2.0 + self.path_length) / made.floor
        price -= made.spared if self.start == 0 else 0.0
        owed = self.tally.owed + self.tally.gap
        return (made.spread * owed if owed else 0.0) + price

    @property
    def diameter(self) -> float:
        """The bound with the steps that were taken, and distances by the diameter."""
        self._need_convexity()
        if not math.isfinite(self.premises.diameter):
            raise InputError(
                "the diameter form needs a bounded domain; `exact` and `weighted_bound` do not"
            )
        return self.tally.diameter(self.premises.diameter)

    @property
    def exact(self) -> float:
        """The bound with the steps that were taken, and the actual distances."""
        self._need_convexity()
        return self.tally.exact

    @property
    def weighted_total(self) -> float:
        """The expected target loss with every round weighted by its step."""
        return self.tally.weighted_risk

    @property
    def weighted_bound(self) -> float:
        """The bound of :attr:`weighted_total`."""
        self._need_convexity()
        return self.tally.weighted_bound

    @property
    def weighted(self) -> float:
        """The weighted bound over the least step of a round that cost anything."""
        self._need_weights()
        least = self.tally.least_eta
        return 0.0 if math.isinf(least) else self.weighted_bound / least

    def _need_weights(self) -> None:
        if self.premises.no_bound:
            raise NoGuaranteeError(self.premises.no_bound)

    def _need_convexity(self) -> None:
        self._need_weights()
        if not self.premises.convex:
            raise NoGuaranteeError("the loss is not convex, and no bound holds for it")

    def bounds(self) -> dict[str, float | str]:
        """Return every bound of the expected total, or why there is none."""
        return {form: or_reason(partial(getattr, self, form)) for form in FORMS}

    @property
    def deviation(self) -> float:
        """By how much the sampled total may exceed the expected one, except with a small chance."""
        return self.tally.deviation(self.chance)

    @property
    def broken(self) -> list[str]:
        """The bounds that the total exceeds by more than rounding: there should be none."""
        slack = self.tally.rounding(self.premises.precision)
        return [
            form
            for form, value in self.bounds().items()
            if isinstance(value, float) and not self.expected <= value + slack
        ]

    # -- parts of it

    def over(self, start: int, stop: int) -> Certificate:
        """Return the certificate of rounds ``start`` to ``stop``, counted as in the stream."""
        if self.rounds_seen is None:
            raise InputError("this certificate kept no rounds: it was made from sums")
        if not (self.start <= start < stop <= self.stop):
            raise InputError(
                f"rounds {start} to {stop} are no interval of {self.start} to {self.stop}"
            )
        seen = self.rounds_seen.over(start - self.start, stop - self.start)
        tally = Tally(self.tally.largest_loss)
        tally.add(seen)
        return replace(self, start=start, stop=stop, tally=tally, rounds_seen=seen)

    def intervals(self, shortest: int = 64) -> list[Certificate]:
        """Return the certificates of halves, quarters and so on, down to ``shortest`` rounds."""
        made, size = [], self.rounds
        while size >= max(1, shortest):
            edges = range(self.start, self.stop - size + 1, size)
            made += [self.over(start, start + size) for start in edges]
            size //= 2
        return made

    def tightest(self, shortest: int = 64) -> Certificate:
        """Return the dyadic interval whose total comes nearest to its exact bound."""
        return max(self.intervals(shortest), key=_tightness)

    def loosest(self, shortest: int = 64) -> Certificate:
        """Return the dyadic interval whose total is farthest below its exact bound."""
        return min(self.intervals(shortest), key=_tightness)

    # -- for people and machines

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw totals under their bounds, steps in their range, and gaps; return the figure."""
        from driftline.certificates.plots import plot

        self._need_weights()
        return plot(self, path=path)

    def to_dict(self) -> Json:
        """Return all numbers by name; bounds that do not exist are None."""
        bounds = {k: v if isinstance(v, float) else None for k, v in self.bounds().items()}
        names = ("expected", "sampled", "comparator_loss", "path_length", "surrogate_regret")
        bound = or_reason(lambda: self.weighted_bound)
        return (
            {"start": self.start, "stop": self.stop}
            | {name: getattr(self, name) for name in names}
            | bounds
            | {"weighted_total": self.weighted_total}
            | {"weighted_bound": bound if isinstance(bound, float) else None}
            | {"trivial": self.trivial, "vacuous": self.vacuous}
            | {"residual": self.tally.residual, "solver_gap": self.tally.gap}
            | {"deviation": self.deviation, "chance": self.chance}
            | {"valid": self.valid, "findings": list(self.findings)}
            | {"unchecked": list(self.unchecked)}
            | {"delayed": None if self.delayed is None else self.delayed._asdict()}
        )

    def __str__(self) -> str:
        """Return a short table."""
        made, tally = self.premises, self.tally
        lines = [
            f"rounds {self.start} to {self.stop}, {self.rounds} in all",
            f"  expected target loss     {self.expected:12.5g}",
            f"  sampled target loss      {self.sampled:12.5g}   at most "
            f"{self.expected + self.deviation:.5g} but with chance {self.chance:g}",
            *self._comparison(),
            f"  {made.guess:<24} {self.trivial:12.5g}",
            f"no bounds: {made.no_bound}" if made.no_bound else "bounds of the expected loss",
        ]
        notes = {
            "worst_case": f"{made.theorem}; D = {made.diameter:.4g}, least step {made.floor:.4g}",
            "diameter": f"steps from {tally.first_eta:.4g} to {tally.last_eta:.4g}, residuals "
            f"{tally.residual:.4g}",
            "exact": "with the distances that there were",
            "weighted": f"{tally.weighted_bound:.5g} for {self.weighted_total:.5g}, over the least "
            f"step {tally.least_eta:.4g}",
        }
        for form, value in () if made.no_bound else self.bounds().items():
            name = f"  {form.replace('_', ' '):<24} "
            if isinstance(value, str):
                lines.append(f"{name}       none   {value}")
            else:
                trivial = f", vacuous: no better than {made.guess.removeprefix('uniform ')}"
                empty = trivial if self.vacuous[form] else ""
                lines.append(f"{name}{value:12.5g}   {notes[form]}{empty}")
        if self.delayed is not None:
            cost, left = self.delayed
            lines.append(
                f"labels came late, which cost {cost:.5g}: predictions when they came would have "
                f"cost {self.expected - cost:.5g}; {left} labels have not come"
            )
        if tally.gap:
            lines.append(f"  of which solver gaps     {tally.gap:12.3g}")
        return "\n".join(lines + self.audit_lines())

    def _comparison(self) -> list[str]:
        """Return lines on the comparator's loss, if there is a comparator."""
        if self.premises.no_bound:
            return []
        return [
            f"  comparator's loss F      {self.comparator_loss:12.5g}   path length P = "
            f"{self.path_length:.5g}",
            f"  surrogate regret         {self.surrogate_regret:12.5g}   expected loss minus F",
        ]


def _tightness(certificate: Certificate) -> float:
    exact = certificate.exact
    return certificate.expected / exact if exact > 0.0 else 1.0


def or_reason(compute: Callable[[], float]) -> float | str:
    """Return a number, or why there is none."""
    try:
        return float(compute())
    except ValueError as reason:
        return str(reason)
