"""A sweep over scales as a table, a file and a figure."""

from __future__ import annotations

import csv
from pathlib import Path

from rich.table import Table

from driftline import files
from driftline.paper.sweep import Point, SweepSettings
from driftline.plotting import COLOURS, new_figure

__all__ = ["draw_sweep", "sweep_table", "write_sweep"]

LABELS = {
    "actual": "expected target loss",
    "comparator": "comparator's surrogate loss",
    "bound": "worst-case bound",
    "guess": "all scores equal",
}


def sweep_table(settings: SweepSettings, points: list[Point]) -> Table:
    """Return a table with a row for every scale."""
    flips = "1 flip" if settings.flips == 1 else f"{settings.flips} flips"
    table = Table(
        title=f"{settings.task}: totals in {settings.rounds} rounds with {flips}, mean of "
        f"{settings.trials} trials, Polyak rate in a ball of diameter {settings.diameter:g}",
        title_justify="left",
        caption="The bound holds for every comparator; its norm is the best of a few, for the "
        "surrogate loss and for the bound apart. A bound above the last column says nothing.",
        caption_justify="left",
    )
    for name in ("regularizer", "scale", *LABELS.values()):
        table.add_column(name, justify="left" if name == "regularizer" else "right")
    for regularizer in dict.fromkeys(point.regularizer for point in points):
        table.add_section()
        for point in points:
            if point.regularizer == regularizer:
                totals = (f"{getattr(point, name):.0f}" for name in LABELS)
                table.add_row(point.regularizer, f"{point.scale:g}", *totals)
    return table


def write_sweep(settings: SweepSettings, points: list[Point], folder: Path) -> Path:
    """Write all points as CSV; return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{settings.task}.csv"
    with files.drafted(path) as draft, draft.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Point._fields)
        writer.writerows(points)
    return path


def draw_sweep(settings: SweepSettings, points: list[Point], folder: Path) -> Path:
    """Draw totals against the scale, a panel for every regularizer; return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    regularizers = list(dict.fromkeys(point.regularizer for point in points))
    figure = new_figure(4.6 * len(regularizers) + 0.4, 3.8)
    panels = figure.subplots(1, len(regularizers), squeeze=False, sharey=True)[0]
    for panel, regularizer in zip(panels, regularizers, strict=True):
        chosen = [point for point in points if point.regularizer == regularizer]
        scales = [point.scale for point in chosen]
        for colour, (name, label) in zip(COLOURS, LABELS.items(), strict=False):
            style = {"color": "0.5", "linestyle": ":"} if name == "guess" else {"color": colour}
            values = [getattr(point, name) for point in chosen]
            panel.plot(scales, values, label=label, marker="." if name != "guess" else "", **style)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("scale")
        panel.set_title(f"{settings.task}, {regularizer}", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"total in {settings.rounds} rounds")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    path = folder / f"{settings.task}.png"
    figure.savefig(path, dpi=150)
    return path
