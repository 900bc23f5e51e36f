"""The race in one figure: mistakes of the best of the others for one of the committee's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.race.board import Board
from benchmarks.race.report import pools
from benchmarks.race.streams import GROUPS
from driftline.paper.figures import COLOURS, new_figure

#: Ratios beyond these are drawn at the edge.
LEAST, MOST = 0.2, 5.0
TICKS = (0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
LOOKS = {
    "default": {"marker": "o", "markersize": 9, "fillstyle": "none", "markeredgewidth": 1.8},
    "any setting": {"marker": "D", "markersize": 4.5},
}
LABELS = {"default": "best peer at its defaults", "any setting": "best peer at any setting"}


def _places(streams: list[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the height of every stream, and of the title above every group of them."""
    heights: dict[str, float] = {}
    titles: dict[str, float] = {}
    height = 0.0
    for title, names in GROUPS.items():
        there = [name for name in streams if name in names]
        if there:
            titles[title] = height
            heights |= {name: height + 1.0 + i for i, name in enumerate(there)}
            height += len(there) + 1.5
    return heights, titles


def _dots(axes: Any, board: Board, heights: dict[str, float]) -> None:
    """Draw the ratios of both peers of every stream, and a line between the two."""
    found: dict[str, list[float]] = {stream: [] for stream in heights}
    for colour, (kind, names) in zip(COLOURS, pools(board).items(), strict=False):
        matches = {stream: board.best(names, stream) for stream in heights}
        x = {s: min(max(m.ratio, LEAST), MOST) for s, m in matches.items() if m is not None}
        for stream, ratio in x.items():
            found[stream].append(ratio)
        y = [heights[stream] for stream in x]
        style = LOOKS[kind] | {"color": colour, "label": LABELS[kind], "linestyle": "none"}
        axes.plot(list(x.values()), y, **style)
    for stream, ratios in found.items():
        if ratios:
            ends = [min(ratios), max(ratios)]
            axes.plot(ends, [heights[stream]] * 2, color="0.75", linewidth=1.2, zorder=1)


def _frame(axes: Any, heights: dict[str, float], titles: dict[str, float]) -> None:
    """Draw the line of equal mistakes, the scale, and the names of streams and groups."""
    axes.axvline(1.0, color="0.4", linewidth=0.9, zorder=0)
    axes.set_xscale("log")
    axes.set_xlim(LEAST / 1.08, MOST * 1.08)
    names = [f"{tick:g}" for tick in TICKS]
    names[0], names[-1] = f"≤ {names[0]}", f"≥ {names[-1]}"
    axes.set_xticks(TICKS, names, minor=False)
    axes.minorticks_off()
    axes.grid(axis="y", color="0.93", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_yticks(list(heights.values()), list(heights))
    for title, height in titles.items():
        axes.text(LEAST, height, title, fontweight="bold", va="center")
    axes.set_ylim(max(heights.values()) + 0.8, -0.8)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("mistakes for one of auto's, on the same rows and seeds")
    axes.spines[["top", "right", "left"]].set_visible(False)


def draw(board: Board, streams: list[str], path: Path) -> Path:
    """Draw a line for every stream; right of 1 the committee has fewer mistakes."""
    heights, titles = _places(streams)
    figure = new_figure(7.5, 0.24 * (len(heights) + 1.5 * len(titles)) + 1.5)
    axes = figure.subplots()
    _dots(axes, board, heights)
    _frame(axes, heights, titles)
    figure.legend(loc="outside lower center", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
