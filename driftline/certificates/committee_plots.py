"""A committee's certificate as a picture: totals under their bound, and the weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driftline.certificates.committee_certificate import CommitteeCertificate, CommitteeRounds
from driftline.errors import InputError
from driftline.plotting import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot"]

BLUE, ORANGE, _, RED, _, _ = COLOURS

#: How many values of t the curves have.
CURVE = 100

#: A bound is drawn in full up to this many times the largest total.
ROOM = 8.0


def plot(certificate: CommitteeCertificate, path: str | Path | None = None) -> Figure:
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
    count = min(CURVE, certificate.rounds)
    edges = np.arange(count + 1) * certificate.rounds // count
    _draw_totals(totals, certificate, rounds, edges)
    _draw_weights(weights, certificate, rounds, edges)
    weights.set_xlabel("round")
    weights.set_xlim(certificate.start, certificate.stop)
    for panel in (totals, weights):
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _draw_totals(
    panel: Axes, certificate: CommitteeCertificate, rounds: CommitteeRounds, edges: np.ndarray
) -> None:
    t = certificate.start + edges
    average = (rounds.weights * rounds.member_risk).sum(axis=1)
    best = certificate.best
    top = 1e-9
    for column, label, colour, width in (
        (rounds.target_loss, "committee", "black", 2.0),
        (average, "weighted average", ORANGE, 1.2),
        (rounds.member_risk[:, best], f"best member ({best})", BLUE, 1.2),
    ):
        total = np.r_[0.0, np.cumsum(column)][edges]
        top = max(top, float(total[-1]))
        panel.plot(t, total, color=colour, linewidth=width, label=f"{label}, {total[-1]:.4g}")
    limit, counts = ROOM * top, rounds.sample_weight
    if (guarded := certificate.guarded) is not None and rounds.book is not None:
        bound = guarded.budget + np.r_[0.0, np.cumsum(rounds.book)][edges]
        words = f"book and budget, {bound[-1]:.4g}"
        words += " (leaves the panel)" if bound[-1] > limit else ""
        panel.plot(t, bound, color=RED, linewidth=1.2, label=words)
        top = max(top, float(bound.max()))
    if math.isfinite(certificate.trivial):
        shares = np.full(certificate.rounds, 1.0) if counts is None else counts
        guess = certificate.members[0].premises.guess_loss * np.r_[0.0, shares.cumsum()][edges]
        words = f"uniform guessing, {certificate.trivial:.4g}"
        words += "\n(leaves the panel)" if certificate.trivial > 1.05 * min(top, limit) else ""
        panel.plot(t, guess, ":", color="0.4", linewidth=1.2, label=words)
    panel.set_ylim(0.0, 1.05 * min(top, limit))
    panel.set_ylabel("cumulative target loss")


def _draw_weights(
    panel: Axes, certificate: CommitteeCertificate, rounds: CommitteeRounds, edges: np.ndarray
) -> None:
    means = np.add.reduceat(rounds.weights, edges[:-1], axis=0) / np.diff(edges)[:, np.newaxis]
    middle = certificate.start + 0.5 * (edges[1:] + edges[:-1])
    for j, column in enumerate(means.T):
        style = "-" if j < len(COLOURS) else "--"
        colour = COLOURS[j % len(COLOURS)]
        panel.plot(middle, column, style, color=colour, linewidth=1.2, label=f"member {j}")
    panel.set_ylim(0.0, 1.0)
    panel.set_ylabel("weight")
