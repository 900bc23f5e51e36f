"""A certificate as a picture: totals under their bounds, steps in their range, gaps."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.certificates.certificate import Certificate
from driftline.errors import InputError
from driftline.plotting import COLOURS, new_figure
from driftline.regret import Tally, Watched
from driftline.trace import Trace, at_most_rounding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot"]

BLUE, ORANGE, GREEN, RED, PURPLE, _ = COLOURS

#: How many values of t the curves of totals and bounds have.
CURVE = 100

#: How many rounds are drawn at most where every round is a dot.
DOTS = 3000

#: How many moves of the comparator are marked at most.
MARKS = 60

#: A bound is drawn in full up to this many times the exact one.
ROOM = 3.0

BOUNDS = {
    "exact": ("exact bound", BLUE, "-"),
    "diameter": ("diameter bound", GREEN, "-"),
    "worst_case": ("worst case", RED, "--"),
}


def plot(
    certificate: Certificate, trace: Trace | None = None, path: str | Path | None = None
) -> Figure:
    """Draw a certificate round by round.

    Three panels over the rounds: the cumulative target loss under its bounds; the steps, with
    the floor and the upper end of their admissible range; the surrogate gap beside the
    comparator's loss, as means of blocks of a hundredth of the rounds.

    Parameters
    ----------
    certificate
        What :func:`~driftline.certify` returned.
    trace
        The rounds, for a certificate that was made from sums and has none. Then bounds are drawn
        at the last round only, and the comparator's losses are not known.
    path
        A file to write the figure to; its suffix says the format.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, without a window.
    """
    rounds = certificate.rounds_seen
    if rounds is None and trace is None:
        raise InputError(
            "this certificate kept no rounds: it was made from sums; give the trace of the run too"
        )
    if trace is not None and len(trace) != certificate.rounds:
        raise InputError(
            f"the certificate is of {certificate.rounds} rounds, but the trace has {len(trace)}"
        )
    seen: Any = trace if rounds is None else rounds
    figure = new_figure(8.0, 8.4)
    totals, steps, gaps = figure.subplots(3, 1, sharex=True, height_ratios=(1.5, 1.0, 1.0))
    _draw_totals(totals, certificate, seen)
    _draw_steps(steps, certificate, seen)
    _draw_gaps(gaps, certificate, seen)
    gaps.set_xlabel("round")
    gaps.set_xlim(certificate.start, certificate.stop)
    for panel in (totals, steps, gaps):
        if rounds is not None:
            _mark_moves(panel, certificate, rounds.move, named=panel is totals)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _edges(rounds: int, count: int) -> np.ndarray:
    """Return the ends of blocks of nearly equal size, from 0 to the number of rounds."""
    count = min(count, rounds)
    return np.arange(count + 1) * rounds // count


def _draw_totals(panel: Axes, certificate: Certificate, seen: Trace | Watched) -> None:
    edges = _edges(len(seen.risk), CURVE)
    t = certificate.start + edges
    for column, label, colour, width in (
        (seen.risk, "expected target loss", "black", 2.0),
        (seen.target_loss, "sampled target loss", ORANGE, 1.0),
    ):
        total = np.r_[0.0, np.cumsum(column)][edges]
        panel.plot(t, total, color=colour, linewidth=width, label=f"{label}, {total[-1]:.4g}")
    curves = _bound_curves(certificate, edges)
    least = max([certificate.expected, certificate.sampled, *_finite(curves["exact"]), 1e-9])
    tops = [least]
    for form, (label, colour, style) in BOUNDS.items():
        values = curves[form]
        if not np.isfinite(values[-1]):
            continue
        words = f"{label}, {values[-1]:.4g}"
        if values[-1] <= ROOM * least:
            tops.append(float(np.nanmax(values)))
        else:
            words += "\n(leaves the panel)"
        marker = "." if np.isfinite(values).sum() == 1 else None
        panel.plot(t, values, style, color=colour, linewidth=1.2, marker=marker, label=words)
    top = 1.05 * min(max(tops), ROOM * least)
    if math.isfinite(certificate.trivial):
        words = f"uniform guessing, {certificate.trivial:.4g}"
        words += "\n(leaves the panel)" if certificate.trivial > top else ""
        guess = certificate.premises.guess_loss * _weights_before(certificate, edges)
        panel.plot(t, guess, ":", color="0.4", linewidth=1.2, label=words)
    panel.set_ylim(1.05 * min([0.0, *_finite(curves["exact"])]), top)
    panel.set_ylabel("cumulative target loss")


def _weights_before(certificate: Certificate, edges: np.ndarray) -> np.ndarray:
    """Return the sum of sample weights before every edge; on a line, if rounds were not kept."""
    if certificate.rounds_seen is None:
        return edges * certificate.tally.weight / max(1, certificate.rounds)
    return np.r_[0.0, certificate.rounds_seen.sample_weight.cumsum()][edges]


def _finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def _bound_curves(certificate: Certificate, edges: np.ndarray) -> dict[str, np.ndarray]:
    """Return the bounds of the rounds before every edge, NaN where there is none."""
    curves = {form: np.full(len(edges), np.nan) for form in BOUNDS}
    tally, seen = Tally(certificate.tally.largest_loss), certificate.rounds_seen
    for k in range(1, len(edges)):
        if seen is not None:
            tally.add(seen.over(int(edges[k - 1]), int(edges[k])))
            stop = certificate.start + int(edges[k])
            bounds = replace(certificate, stop=stop, tally=tally, rounds_seen=None).bounds()
        elif k == len(edges) - 1:
            bounds = certificate.bounds()
        else:
            continue
        for form, curve in curves.items():
            value = bounds[form]
            curve[k] = value if isinstance(value, float) else np.nan
    return curves


def _draw_steps(panel: Axes, certificate: Certificate, seen: Trace | Watched) -> None:
    """Draw a sample of rounds, the same for all curves, and every step above its range."""
    eta, moved = seen.eta, seen.grad_sq > 0.0
    gap = seen.loss - seen.risk
    upper = np.divide(2.0 * gap, seen.grad_sq, out=np.full(len(eta), np.inf), where=moved)
    residual = 0.5 * eta * seen.grad_sq - gap
    outside = np.flatnonzero(~at_most_rounding(residual, seen.loss, seen.gap))
    rounds = np.flatnonzero(moved & (gap > 0.0))
    t = certificate.start + np.arange(len(eta))
    dots = rounds[:: max(1, -(-len(rounds) // DOTS))]
    panel.plot(
        t[dots],
        upper[dots],
        ".",
        color="0.65",
        markersize=2.5,
        label="upper end of its range",
        rasterized=True,
        zorder=3,
    )
    every = _edges(len(eta), DOTS)[:-1]
    panel.plot(t[every], eta[every], color=BLUE, linewidth=1.0, label="step")
    if len(outside):
        panel.plot(
            t[outside],
            eta[outside],
            ".",
            color=RED,
            markersize=3,
            label=f"above its range,\n{len(outside)} of {len(eta)} rounds",
            rasterized=True,
            zorder=3,
        )
    floor = certificate.premises.floor
    if math.isfinite(floor) and floor > 0.0:
        panel.axhline(
            floor, color=GREEN, linewidth=1.0, linestyle="--", label=f"floor, {floor:.4g}"
        )
    panel.set_yscale("log")
    panel.set_ylabel("step")


def _draw_gaps(panel: Axes, certificate: Certificate, seen: Trace | Watched) -> None:
    edges = _edges(len(seen.loss), CURVE)
    middle = certificate.start + 0.5 * (edges[1:] + edges[:-1])
    size = np.diff(edges)
    columns = {"surrogate gap": (seen.loss - seen.risk, BLUE)}
    if certificate.rounds_seen is not None:
        columns["comparator's loss"] = (certificate.rounds_seen.comparator_loss, PURPLE)
    for label, (column, colour) in columns.items():
        means = np.add.reduceat(column, edges[:-1]) / size
        panel.plot(middle, means, color=colour, linewidth=1.3, label=label)
    panel.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    block = f"means of {size[0]} rounds" if size[0] > 1 else "a round"
    panel.set_ylabel(f"loss\n({block})")


def _mark_moves(panel: Axes, certificate: Certificate, move: np.ndarray, named: bool) -> None:
    """Mark where the comparator moves; if there are too many moves, write their number."""
    moves = certificate.start + np.flatnonzero(move > 0.0)
    if named and len(moves) > MARKS:
        panel.plot([], [], " ", label=f"(comparator moves in\n{len(moves)} rounds)")
    elif len(moves) <= MARKS:
        for k, t in enumerate(moves.tolist()):
            label = "comparator moves" if named and k == 0 else None
            panel.axvline(t, color="0.8", linewidth=0.7, zorder=0, label=label)
