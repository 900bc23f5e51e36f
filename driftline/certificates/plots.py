"""Certificates as pictures: totals under their bounds, steps in their range, gaps, weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.certificates.certificate import Certificate
from driftline.certificates.committee_certificate import CommitteeCertificate, CommitteeRounds
from driftline.errors import InputError
from driftline.plotting import COLOURS, new_figure
from driftline.regret import Tally, Watched
from driftline.trace import Trace, at_most_rounding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot", "plot_committee"]

BLUE, ORANGE, GREEN, RED, PURPLE, _ = COLOURS

#: How many values of t the curves of totals and bounds have.
CURVE = 100

#: How many rounds are drawn at most where every round is a dot.
DOTS = 3000

#: How many moves of the comparator are marked at most.
MARKS = 60

#: A bound is drawn in full up to this many times the exact one; that of a committee up to this
#: many times the largest total.
ROOM, WIDE = 3.0, 8.0

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
    if rounds is not None:
        for panel in (totals, steps, gaps):
            _mark_moves(panel, certificate, rounds.move, named=panel is totals)
    return _finished(figure, (totals, steps, gaps), certificate, path)


def plot_committee(certificate: CommitteeCertificate, path: str | Path | None = None) -> Figure:
    """Draw a committee's certificate round by round.

    Two panels over the rounds: the cumulative target loss of the committee, the weighted average
    and the best member, under what the book of a guard has allowed and its budget; and the members'
    weights, as means of blocks of a hundredth of the rounds.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, without a window.
    """
    rounds = certificate.rounds_seen
    if rounds is None:
        raise InputError("this certificate kept no rounds: expected one made with keep=True")
    figure = new_figure(8.0, 6.4)
    totals, weights = figure.subplots(2, 1, sharex=True, height_ratios=(1.5, 1.0))
    _draw_committee(totals, certificate, rounds)
    _draw_weights(weights, certificate, rounds)
    return _finished(figure, (totals, weights), certificate, path)


def _finished(
    figure: Figure,
    panels: Sequence[Axes],
    certificate: Certificate | CommitteeCertificate,
    path: str | Path | None,
) -> Figure:
    """Add legends and the axis of rounds, and write the figure to a file if there is a path."""
    panels[-1].set_xlabel("round")
    panels[-1].set_xlim(certificate.start, certificate.stop)
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _edges(rounds: int, count: int) -> np.ndarray:
    """Return the ends of blocks of nearly equal size, from 0 to the number of rounds."""
    count = min(count, rounds)
    return np.arange(count + 1) * rounds // count


def _draw_sums(
    panel: Axes, t: np.ndarray, edges: np.ndarray, curves: Iterable[tuple[np.ndarray, str, str]]
) -> None:
    """Draw cumulative losses at the edges of blocks, the first of them bold."""
    for k, (column, label, colour) in enumerate(curves):
        total, width = np.r_[0.0, np.cumsum(column)][edges], 1.2 if k else 2.0
        panel.plot(t, total, color=colour, linewidth=width, label=f"{label}, {total[-1]:.4g}")
    panel.set_ylabel("cumulative target loss")


def _draw_guess(panel: Axes, t: np.ndarray, guess: np.ndarray, top: float) -> None:
    """Draw the loss of guessing, if it is finite."""
    if math.isfinite(guess[-1]):
        words = f"uniform guessing, {guess[-1]:.4g}"
        words += "\n(leaves the panel)" if guess[-1] > top else ""
        panel.plot(t, guess, ":", color="0.4", linewidth=1.2, label=words)


def _draw_totals(panel: Axes, certificate: Certificate, seen: Trace | Watched) -> None:
    edges = _edges(len(seen.risk), CURVE)
    t = certificate.start + edges
    own = (seen.risk, "expected target loss", "black")
    _draw_sums(panel, t, edges, [own, (seen.target_loss, "sampled target loss", ORANGE)])
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
    _draw_guess(
        panel, t, certificate.premises.guess_loss * _weights_before(certificate, edges), top
    )
    panel.set_ylim(1.05 * min([0.0, *_finite(curves["exact"])]), top)


def _draw_committee(
    panel: Axes, certificate: CommitteeCertificate, rounds: CommitteeRounds
) -> None:
    edges, best = _edges(certificate.rounds, CURVE), certificate.best
    t, average = certificate.start + edges, (rounds.weights * rounds.member_risk).sum(axis=1)
    curves = [
        (rounds.target_loss, "committee", "black"),
        (average, "weighted average", ORANGE),
        (rounds.member_risk[:, best], f"best member ({best})", BLUE),
    ]
    _draw_sums(panel, t, edges, curves)
    top = max(1e-9, *(float(column.sum()) for column, _, _ in curves))
    limit, counts = WIDE * top, rounds.sample_weight
    if (guarded := certificate.guarded) is not None and rounds.book is not None:
        bound = guarded.budget + np.r_[0.0, np.cumsum(rounds.book)][edges]
        words = f"book and budget, {bound[-1]:.4g}"
        words += " (leaves the panel)" if bound[-1] > limit else ""
        panel.plot(t, bound, color=RED, linewidth=1.2, label=words)
        top = max(top, float(bound.max()))
    top, shares = 1.05 * min(top, limit), np.ones(certificate.rounds) if counts is None else counts
    guess = certificate.members[0].premises.guess_loss * np.r_[0.0, shares.cumsum()][edges]
    _draw_guess(panel, t, guess, top)
    panel.set_ylim(0.0, top)


def _draw_weights(panel: Axes, certificate: CommitteeCertificate, rounds: CommitteeRounds) -> None:
    edges = _edges(certificate.rounds, CURVE)
    means = np.add.reduceat(rounds.weights, edges[:-1], axis=0) / np.diff(edges)[:, np.newaxis]
    middle = certificate.start + 0.5 * (edges[1:] + edges[:-1])
    for j, column in enumerate(means.T):
        style = "-" if j < len(COLOURS) else "--"
        colour = COLOURS[j % len(COLOURS)]
        panel.plot(middle, column, style, color=colour, linewidth=1.2, label=f"member {j}")
    panel.set_ylim(0.0, 1.0)
    panel.set_ylabel("weight")


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
    dots, every = rounds[:: max(1, -(-len(rounds) // DOTS))], _edges(len(eta), DOTS)[:-1]
    words = f"above its range,\n{len(outside)} of {len(eta)} rounds"
    style: dict[str, Any] = {"rasterized": True, "zorder": 3}
    label = "upper end of its range"
    panel.plot(t[dots], upper[dots], ".", color="0.65", markersize=2.5, label=label, **style)
    panel.plot(t[every], eta[every], color=BLUE, linewidth=1.0, label="step")
    if len(outside):
        panel.plot(t[outside], eta[outside], ".", color=RED, markersize=3, label=words, **style)
    floor = certificate.premises.floor
    if math.isfinite(floor) and floor > 0.0:
        label = f"floor, {floor:.4g}"
        panel.axhline(floor, color=GREEN, linewidth=1.0, linestyle="--", label=label)
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
