"""The race in one figure: mistakes of the best of the others for one of the committee's."""

from __future__ import annotations

from pathlib import Path

from benchmarks.race.board import Board
from benchmarks.race.peers import PEERS
from driftline.paper.figures import COLOURS, new_figure


def draw(board: Board, streams: list[str], path: Path) -> Path:
    """Draw a line for every stream; right of 1 the committee has fewer mistakes."""
    figure = new_figure(7.5, 0.42 * len(streams) + 1.6)
    axes = figure.subplots()
    pools = {
        "best peer at its defaults": (board.defaults, "o"),
        "best peer at any setting": (board.group(*PEERS), "D"),
        "best member": (board.group("members"), "|"),
        "best constant step": (board.group("sgd"), "x"),
    }
    places = range(len(streams))
    for colour, (label, (names, marker)) in zip(COLOURS, pools.items(), strict=False):
        found = [board.best(names, stream) for stream in streams]
        y = [place for match, place in zip(found, places, strict=True) if match]
        x = [match.ratio for match in found if match]
        axes.plot(x, y, marker, color=colour, label=label, markersize=7, linestyle="none")
    axes.axvline(1.0, color="0.6", linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    ticks = [0.5, 0.7, 1.0, 1.5, 2.0, 3.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.minorticks_off()
    axes.set_yticks(list(places), streams)
    axes.invert_yaxis()
    axes.set_xlabel("mistakes for one of auto's, on the same rows and seeds")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
