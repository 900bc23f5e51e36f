r"""Mistakes that do not grow with the number of rounds, though every label changes half-way.

Two classes, separated with a margin, swap their names in the middle of the stream. The comparator
that swaps too has smooth hinge loss 0 and moves once, so that the theorem bounds the mistakes
independently of the length of the stream. No fixed weights do as well: the second half repeats
the inputs of the first with the other label, and the losses of an input's two labels,
:math:`\max(0, 1 - z)^2 + 1 + 2 z` at margins :math:`\pm z`, sum to at least 2. So the least loss of
fixed weights is that of zero weights, T; and every fixed linear rule makes T / 2 mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driftline.certificates import certify
from driftline.comparators import Piecewise
from driftline.decoders import Argmax, GapOptimal
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.learner import OGD
from driftline.losses import Scaled, SmoothHinge
from driftline.plotting import COLOURS, new_figure
from driftline.rates import Polyak
from driftline.streams.base import Stream, check_count
from driftline.tasks import Multiclass
from driftline.typing import Json

if TYPE_CHECKING:
    from driftline.certificates import Certificate

__all__ = ["HalfwayFlip", "constant_mistakes"]

#: The factor of the loss under argmax.
FACTOR = 4.0


class HalfwayFlip(Stream):
    """Points of the unit circle outside a strip, labelled by their side; half-way sides swap.

    The second half has the points of the first, in another order. The comparator has margin
    at least 1 everywhere, and ``domain`` is the smallest ball that holds it. A learner with the
    same seed draws other numbers.

    >>> stream = HalfwayFlip(rounds=100, margin=0.25, seed=0)
    >>> stream.starts, round(stream.comparator.largest_norm, 4), stream.domain.radius.__round__(4)
    (array([ 0, 50]), 2.8284, 2.8284)
    """

    task: Multiclass

    def __init__(self, rounds: int, margin: float = 0.25, seed: int | None = 0):
        rounds = check_count(rounds, 2, "rounds")
        if rounds % 2:
            raise InputError(f"rounds must be even, to have two equal halves, but are {rounds}")
        if not 0.0 < margin < 1.0:
            raise InputError(f"margin must lie between 0 and 1, but is {margin}")
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        half = rounds // 2
        least = math.asin(margin)
        angle = generator.uniform(least, math.pi - least, half)
        side = generator.integers(0, 2, half)
        along, across = np.cos(angle), np.sin(angle) * (1.0 - 2.0 * side)
        points = np.stack([along + across, across - along], axis=1) / math.sqrt(2.0)
        again = generator.permutation(half)
        self.task = Multiclass(2)
        self.inputs = np.concatenate([points, points[again]])
        self.labels = np.concatenate([side, 1 - side[again]])
        self.starts = np.array([0, half])
        normal = np.full(2, 1.0 / math.sqrt(2.0))
        pair = np.stack([normal, -normal]) / (2.0 * margin)
        # Inputs just at the margin must not lose it to rounding.
        pair *= 1.0 + 1e-9
        self.comparator = Piecewise(self.starts, np.stack([pair, -pair]))
        self.domain = Ball(2.0 * self.comparator.largest_norm)


@dataclass(frozen=True)
class _Learner:
    name: str
    argmax: bool
    monotone: bool

    def make(self, stream: HalfwayFlip, margin: float) -> OGD:
        """Return a fresh learner for the stream."""
        hinge = SmoothHinge(stream.task)
        loss = Scaled(hinge, FACTOR) if self.argmax else hinge
        decoder = Argmax(loss) if self.argmax else GapOptimal(loss)
        rate = Polyak()
        if not self.monotone:
            # Margins in the ball are at least -1 / margin, so that this cap cuts no step off.
            cap = (1.0 + 2.0 / margin) / (4.0 * (FACTOR if self.argmax else 1.0))
            rate = Polyak(monotone=False, cap=cap)
        return OGD(loss, decoder, rate, stream.domain)


LEARNERS = (
    _Learner("gap-optimal, Polyak", argmax=False, monotone=True),
    _Learner("gap-optimal, free Polyak", argmax=False, monotone=False),
    _Learner(f"argmax of {FACTOR:g} L, Polyak", argmax=True, monotone=True),
    _Learner(f"argmax of {FACTOR:g} L, free Polyak", argmax=True, monotone=False),
)


def constant_mistakes(
    rounds: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000),
    seeds: int = 3,
    margin: float = 0.25,
    folder: Path | None = None,
) -> list[Json]:
    """Play streams of growing length whose labels flip half-way.

    Parameters
    ----------
    rounds
        Lengths of the streams, even numbers.
    seeds
        How many streams of every length.
    margin
        Half the width of the strip without points.
    folder
        Where to write the figure ``constant.png``, if anywhere.

    Returns
    -------
    list of dict
        For every length and learner: the mean over the seeds of the ``expected`` and ``sampled``
        mistakes, the ``largest`` expected ones, the ``worst_case`` bound, the ``comparator_loss``
        of the weights that flip, the least loss ``fixed_loss`` of weights that do not, and their
        mistakes ``fixed_mistakes``.
    """
    seeds = check_count(seeds, 1, "seeds")
    rows = []
    for length in rounds:
        streams = [HalfwayFlip(length, margin, seed) for seed in range(seeds)]
        for kind in LEARNERS:
            made = [_certificate(kind.make(s, margin), s, k) for k, s in enumerate(streams)]
            rows.append(
                {
                    "rounds": len(streams[0]),
                    "learner": kind.name,
                    "expected": float(np.mean([c.expected for c in made])),
                    "sampled": float(np.mean([c.sampled for c in made])),
                    "largest": max(c.expected for c in made),
                    "worst_case": made[0].worst_case,
                    "comparator_loss": max(c.comparator_loss for c in made),
                    "fixed_loss": float(length),
                    "fixed_mistakes": length / 2,
                }
            )
    if folder is not None:
        _draw(rows, margin, folder)
    return rows


def _certificate(learner: OGD, stream: HalfwayFlip, seed: int) -> Certificate:
    learner.watch(stream.comparator)
    learner.run(stream, seed=seed)
    return certify(learner)


def _draw(rows: list[Json], margin: float, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    figure = new_figure(8.6, 4.4)
    panel = figure.subplots()
    lengths = sorted({row["rounds"] for row in rows})
    panel.plot(lengths, lengths, color="black", label="least surrogate loss of fixed weights")
    half = [length / 2 for length in lengths]
    panel.plot(lengths, half, ":", color="black", label="mistakes of any fixed weights")
    for k, kind in enumerate(LEARNERS):
        mine = [row for row in rows if row["learner"] == kind.name]
        colour = COLOURS[k]
        x = [row["rounds"] for row in mine]
        panel.plot(x, [row["expected"] for row in mine], "o-", color=colour, label=kind.name)
        if kind.monotone:
            bound = [row["worst_case"] for row in mine]
            label = f"bound, {'argmax' if kind.argmax else 'gap-optimal'}"
            panel.plot(x, bound, "--", color=colour, label=label)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("rounds")
    panel.set_ylabel("expected mistakes, or loss")
    panel.set_title(f"Labels flip half-way, margin {margin:g}", fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    path = folder / "constant.png"
    figure.savefig(path, dpi=150)
    return path
