"""Results as panels: a row for every data set, a column for every number of flips."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.paper.catalog import EXPERIMENTS
from driftline.paper.results import Mean, Results
from driftline.plotting import COLOURS, new_figure
from driftline.streams.base import segment_starts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

#: Groups without a guarantee; only the best method of each, in hindsight, is drawn.
REFERENCES = {"sgd": "SGD, best step in hindsight", "baselines": "best baseline in hindsight"}


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw a figure of the first group of methods and one of the second; return their paths.

    The best method without a guarantee, chosen in hindsight, goes into the second.
    """
    folder.mkdir(parents=True, exist_ok=True)
    first, second = list(EXPERIMENTS[results.settings["task"]].groups)[:2]
    plain = {name: name for name in results.methods(first)}
    other = {name: name for name in results.methods(second)}
    reference = next((group for group in REFERENCES if results.methods(group)), None)
    return [
        _panels(results, plain, folder / "reproduce.png", None),
        _panels(
            results,
            {"Polyak": f"Polyak ({first})"} | other,
            folder / "recommended.png",
            reference,
        ),
    ]


def _panels(results: Results, methods: dict[str, str], path: Path, reference: str | None) -> Path:
    data, flips = results.settings["data"], results.settings["flips"]
    rows, columns = len(data), len(flips)
    figure = new_figure(3.6 * columns + 0.4, 2.9 * rows + 0.8)
    axes = figure.subplots(rows, columns, squeeze=False)
    for row, name in zip(axes, data, strict=True):
        for panel, count in zip(row, flips, strict=True):
            _draw_panel(panel, results, name, count, methods, reference)
        row[0].set_ylabel("cumulative target loss")
    for panel in axes[-1]:
        panel.set_xlabel("round")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
    figure.savefig(path, dpi=150)
    return path


def _draw_panel(
    panel: Axes,
    results: Results,
    data: str,
    flips: int,
    methods: dict[str, str],
    reference: str | None,
) -> None:
    for colour, (name, label) in zip(COLOURS, methods.items(), strict=False):
        _draw_curve(panel, results, data, flips, name, label, color=colour)
    if reference is not None:
        name = results.best(reference, data, flips)
        _draw_curve(
            panel,
            results,
            data,
            flips,
            name,
            REFERENCES[reference],
            color="black",
            linestyle="--",
        )
    if flips <= 20:
        for start in segment_starts(results.settings["rounds"], flips)[1:]:
            panel.axvline(start, color="0.85", linewidth=0.8, zorder=0)
    title = EXPERIMENTS[results.settings["task"]].titles.get(data, data)
    panel.set_title(f"{title}, {flips} flip{'' if flips == 1 else 's'}", fontsize=10)
    panel.set_xlim(0, results.settings["rounds"])
    panel.set_ylim(bottom=0)
    panel.spines[["top", "right"]].set_visible(False)


def _draw_curve(
    panel: Axes, results: Results, data: str, flips: int, name: str, label: str, **style: Any
) -> None:
    """Draw the mean over trials, in its 95% band."""
    curves = np.array([run.curve for run in results.select(data, flips, name)])
    means = [Mean.of(column) for column in curves.T]
    middle = np.array([mean.value for mean in means])
    half = np.nan_to_num([mean.half for mean in means])
    panel.plot(results.points, middle, label=label, linewidth=1.4, **style)
    panel.fill_between(
        results.points, middle - half, middle + half, color=style["color"], alpha=0.25, linewidth=0
    )
