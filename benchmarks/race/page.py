"""The page of the race: a summary, the figure, how it was played, tables."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.race.board import Board, label
from benchmarks.race.play import Job
from benchmarks.race.report import said, who_played
from benchmarks.race.river_streams import POSITION, SHUTTLE_ROWS, WIDTHS
from benchmarks.race.sheet import Sheet
from benchmarks.race.streams import CHOOSING_SEEDS, COVERTYPE_ROWS, FIXED

TITLE = """# The race

Prequential mistakes (predict, then learn, row by row) of `driftline.auto` beside other libraries:
the same rows in the same order. Made by `make race` and `make race-java`, which write this page.

"""

FIGURE = """![Mistakes of the best of the others for one of auto's](images/race.png)

*Mistakes of the best peer for one of auto's, on the same rows and seeds: right of the line `auto`
makes fewer.*

"""


def _how(board: Board, streams: list[str], seeds: list[int], full: bool) -> str:
    """Return what was played, on which rows and seeds, and what settings were chosen on."""
    choosing = said(list(CHOOSING_SEEDS))
    lines = [
        f"Settings of `auto` are chosen on seeds {choosing} of streams that are drawn from a seed, "
        f"and reported on seeds {said(seeds)}.",
        f"Data in their own order ({', '.join(FIXED)}) have no seed: settings may have been chosen "
        "with them in view, and nothing of them is held out. The summary counts the others apart.",
        "A peer's best setting is chosen in hindsight for each stream, on the rows that are "
        "reported.",
        "`auto` plays raw rows and scales them itself, as they come. Linear peers play the same "
        "rows standardised in the same way. Forests, trees, neighbours and naive Bayes play raw "
        "rows; neighbours play standardised ones too, as another setting.",
        f"River's generators have 10,000 rows. Abrupt: another concept from row {POSITION} on. "
        f"Gradual: rows come from one or the other with a probability that changes over "
        f"{WIDTHS['gradual']} rows; the hyperplane and the clusters (rbf) move by themselves, "
        "all the time.",
        "The tables of River's wheel are in the file's order: none is sorted by class. "
        f"Of Shuttle the first {SHUTTLE_ROWS:,} rows are played, of Covertype the first "
        f"{COVERTYPE_ROWS:,}, of all others all. Data sets that River downloads are left out.",
        "Rounds a second are of runs side by side, those of peers at the time when they first "
        "played: compare orders of magnitude. Logarithmic losses of `auto` are those of "
        "scikit-learn's interface, row by row.",
        *who_played(board, streams, seeds, full),
    ]
    return "## How it was played\n\n" + "\n".join(f"- {line}" for line in lines) + "\n\n"


def left_out(left: list[Job]) -> str:
    """Return which peers have not played which streams, where that is so."""
    if not left:
        return ""
    streams: dict[str, set[str]] = defaultdict(set)
    for job in left:
        streams[label(job.name)].add(job.stream)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, theirs in streams.items():
        groups[tuple(sorted(theirs))].append(name)
    lines = [f"- {'; '.join(names)}: {', '.join(theirs)}." for theirs, names in groups.items()]
    title = (
        "### Not played\n\nThe best peer is the best of those that played. These have not played "
    )
    title += "all their seeds of these streams:\n\n"
    return title + "\n".join(lines) + "\n\n"


def page(
    board: Board,
    streams: list[str],
    first: Sheet,
    rest: list[Sheet],
    *,
    seeds: list[int],
    full: bool,
    left: list[Job],
) -> str:
    """Return the page in Markdown: the first sheet, the figure, all others."""
    how = _how(board, streams, seeds, full) + left_out(left)
    tables = "\n".join(sheet.markdown() for sheet in rest)
    return TITLE + first.markdown() + "\n" + FIGURE + how + tables
