"""Actual totals beside all bounds, on the streams of the paper's experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from driftline.certificates import Certificate, best_piecewise, certify
from driftline.decoders import Argmax
from driftline.domains import Ball
from driftline.learner import OGD
from driftline.losses import Logistic, Scaled, SmoothHinge
from driftline.rates import Polyak
from driftline.streams import DigitTriples, LabelFlips, Stream
from driftline.tasks import Task
from driftline.typing import Json

__all__ = ["BoundRow", "LEARNERS", "bound_table"]

#: Radii of the balls in which comparators are fitted: larger ones have less loss and longer paths.
NORMS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)

FORMS = ("exact", "weighted", "diameter", "worst_case")


def _gap_optimal(task: Task) -> OGD:
    return OGD(Logistic(task), rate=Polyak(), domain=Ball(20.0))


def _free(task: Task) -> OGD:
    loss = Scaled(SmoothHinge(task), 4.0)
    return OGD(loss, Argmax(loss), Polyak(monotone=False), Ball(20.0))


#: The learners of the table.
LEARNERS: dict[str, Callable[[Task], OGD]] = {
    "Polyak, gap-optimal": _gap_optimal,
    "free Polyak, hinge, c = 4": _free,
}


#: The streams, from rounds, flips and a seed.
STREAMS: dict[str, Callable[[int, int, int], Stream]] = {
    "synthetic": lambda rounds, flips, seed: LabelFlips(rounds, flips, seed, form="matrix"),
    "digits": lambda rounds, flips, seed: DigitTriples(rounds, flips, seed),
}


@dataclass(frozen=True)
class BoundRow:
    """One run: its expected total, the least value of each bound, and which are vacuous."""

    learner: str
    data: str
    flips: int
    expected: float
    surrogate: float
    trivial: float
    bounds: dict[str, float]

    @property
    def vacuous(self) -> list[str]:
        """The bounds that are no better than guessing."""
        return [form for form, value in self.bounds.items() if value >= self.trivial]

    def cells(self) -> Json:
        """Return the row for a table; a star marks a vacuous bound."""
        shown = {
            form.replace("_", " "): f"{self.bounds[form]:.0f}{'*' * (form in self.vacuous)}"
            if form in self.bounds
            else "none"
            for form in FORMS
        }
        return {
            "learner": self.learner,
            "data": self.data,
            "flips": self.flips,
            "actual": round(self.expected),
            **shown,
            "exact / actual": self.bounds["exact"] / self.expected,
            "guessing": round(self.trivial),
        }


def bound_table(
    rounds: int = 10_000,
    flips: tuple[int, ...] = (1, 10, 100),
    seed: int = 0,
    progress: Callable[[], None] | None = None,
) -> Iterator[BoundRow]:
    """Yield a row for every learner and stream.

    Each bound takes the best of a few comparators, which are fitted in balls of different norms
    between the known flips. Any comparator is valid, so the least value is.
    """
    for name, make in LEARNERS.items():
        for data, kind in STREAMS.items():
            for count in flips:
                yield _row(name, make, data, kind(rounds, count, seed), count)
                if progress is not None:
                    progress()


def _row(name: str, make: Callable[[Task], OGD], data: str, stream: Stream, flips: int) -> BoundRow:
    learner = make(stream.task)
    trace = learner.run(stream, seed=0)
    bounds: dict[str, float] = {}
    for norm in NORMS:
        found = best_piecewise(
            learner.loss,
            stream,
            domain=Ball(2.0 * norm),
            segments=flips + 1,
            candidates=stream.starts[1:],
        )
        made: Certificate = certify(trace, found.comparator, stream)
        for form, value in made.bounds().items():
            if isinstance(value, float):
                bounds[form] = min(bounds.get(form, value), value)
    ordered = {form: bounds[form] for form in FORMS if form in bounds}
    return BoundRow(
        name, data, flips, made.expected, float(trace.loss.sum()), made.trivial, ordered
    )
