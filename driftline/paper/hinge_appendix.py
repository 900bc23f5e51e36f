r"""Why the hinge loss is not a surrogate for the theorems: it jumps, or its slope stays.

Cut off above a margin :math:`\kappa < 1` the hinge loss is self-bounding and not continuous. Not
cut off, :math:`\kappa = 1`, it is convex, and :math:`\|g\|^2 / (2 L) = 1 / (1 - m)` grows without
bound as the margin m tends to 1. For the smooth hinge this ratio is never above 4.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from driftline.losses import Hinge, Loss, SmoothHinge
from driftline.plotting import COLOURS, new_figure
from driftline.tasks import Multiclass
from driftline.typing import Json

__all__ = ["hinge_appendix", "hinge_numbers"]

#: Distances at which a critical margin is approached, from either side.
DISTANCES = 10.0 ** -np.arange(1, 9)


def _losses() -> dict[str, tuple[Loss, tuple[float, ...]]]:
    """Return the losses with their critical margins."""
    task = Multiclass(2)
    return {
        "smooth hinge": (SmoothHinge(task), (0.0, 1.0)),
        "hinge, kappa = 1": (Hinge(task, 1.0), (1.0,)),
        "hinge, kappa = 1/2": (Hinge(task, 0.5), (0.5,)),
    }


def _look(loss: Loss, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and ratios |g|^2 / (2 L) at some margins; the ratio is 0 where g is."""
    values, ratios = np.empty(len(margins)), np.zeros(len(margins))
    for k, margin in enumerate(margins):
        values[k], grad = loss.value_and_grad(np.array([margin, 0.0]), 0)
        square = float(grad @ grad)
        if square > 0.0:
            ratios[k] = square / (2.0 * values[k]) if values[k] > 0.0 else np.inf
    return values, ratios


def hinge_numbers() -> list[Json]:
    """Return ratios and jumps of each loss near its critical margins.

    Returns
    -------
    list of dict
        For every loss and critical ``margin``: the largest ``ratio`` |g|^2 / (2 L) found within
        1e-8 to 0.1 of it on either side, the ``jump`` of the loss across it, by how much the loss
        in the middle of two points around it exceeds their mean (``above_chord``, positive only
        where it is not convex), and the loss's own ``self_bound``.

    Examples
    --------
    >>> [(row["loss"], row["margin"], round(row["ratio"], 3)) for row in hinge_numbers()][-1]
    ('hinge, kappa = 1/2', 0.5, 2.0)
    """
    rows = []
    for name, (loss, critical) in _losses().items():
        for margin in critical:
            around = np.r_[margin - DISTANCES, margin + DISTANCES]
            values, ratios = _look(loss, around)
            below, above = np.split(values, 2)
            middle = _look(loss, np.array([margin]))[0]
            rows.append(
                {
                    "loss": name,
                    "margin": margin,
                    "ratio": float(ratios.max()),
                    "jump": float(below[-1] - above[-1]),
                    "above_chord": float((middle - 0.5 * (below + above)).max()),
                    "self_bound": loss.self_bound,
                }
            )
    return rows


def hinge_appendix(folder: Path) -> Path:
    """Draw the losses and their ratios |g|^2 / L over the margin; return the path of the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    figure = new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    grid = np.linspace(-0.5, 1.5, 2001)
    near = 1.0 - np.geomspace(1e-4, 0.5, 200)
    margins = np.unique(np.r_[grid, near])
    for k, (name, (loss, _)) in enumerate(_losses().items()):
        colour, width = COLOURS[k], (1.6, 3.6, 1.6)[k]
        values, ratios = _look(loss, margins)
        label = name.replace("kappa", r"$\kappa$")
        ratios = np.where(ratios > 0.0, 2.0 * ratios, np.nan)
        broken = values.copy()
        if isinstance(loss, Hinge) and not loss.convex:
            after = int(np.searchsorted(margins, loss.kappa, side="right"))
            broken[after] = np.nan
            ends = {"marker": "o", "markersize": 5, "color": colour, "linestyle": "none"}
            left.plot([loss.kappa], [1.0 - loss.kappa], **ends)
            left.plot([loss.kappa], [0.0], markerfacecolor="white", **ends)
        left.plot(margins, broken, color=colour, label=label, linewidth=width)
        right.plot(margins, ratios, color=colour, label=label, linewidth=width)
    left.set_title("the loss jumps where it is cut off", fontsize=10)
    left.set_ylabel("loss $L$")
    right.set_title(r"or its slope outlives it: $\|g\|^2 / L$ is unbounded", fontsize=10)
    right.set_ylabel(r"$\|g\|^2 / L$")
    right.set_yscale("log")
    right.set_ylim(1.0, 3e4)
    right.axhline(8.0, color="0.6", linewidth=0.8, linestyle=":")
    right.text(-0.5, 10.0, "8 = 2 M of the smooth hinge", fontsize=8, color="0.4")
    for panel in (left, right):
        panel.set_xlabel("margin")
        panel.set_xticks([-0.5, 0.0, 0.5, 1.0, 1.5])
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8, frameon=False)
    path = folder / "hinge.png"
    figure.savefig(path, dpi=150)
    return path
