"""``python -m benchmarks.race``: play, compare, and write what was found."""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.console import Console

from benchmarks.race.board import Board
from benchmarks.race.figure import draw
from benchmarks.race.play import race
from benchmarks.race.report import SPEED_STREAM, everyone, summary, write_runs
from benchmarks.race.speed import dense_speed, sparse_speed, speed_of
from benchmarks.race.streams import STREAMS, WIDE, available, rows_of

FIRST_SEED = 100

TITLE = """# The race

Prequential mistakes (predict, then learn, row by row) of `driftline.auto` beside other libraries:
the same rows in the same order, standardised in the same way. A peer's best setting is chosen in
hindsight for each stream. Made by `make race`, which writes this page.

![Mistakes of the best of the others for one of auto's](images/race.png)

"""


@click.command()
@click.option(
    "--seeds", type=click.IntRange(1), default=10, show_default=True, help="How many, from 100 on."
)
@click.option("--full", is_flag=True, help="All rows and seeds for slow peers too.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
@click.option("--stream", "chosen", multiple=True, type=click.Choice(list(STREAMS)))
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results/race"),
    show_default=True,
)
def main(seeds: int, full: bool, jobs: int, chosen: tuple[str, ...], folder: Path) -> None:
    """Race against other libraries: the same rows, predicted and then learned from."""
    began = time.perf_counter()
    streams = list(chosen) or available()
    numbers = [FIRST_SEED + i for i in range(seeds)]
    runs = race(streams, numbers, folder, full=full, jobs=jobs)
    board = Board(runs)
    sheets = [
        everyone(board, streams, numbers, full),
        summary(board, streams),
        *(
            speed_of(name, rows_of(name, FIRST_SEED))
            for name in (SPEED_STREAM, *WIDE)
            if name in streams
        ),
        dense_speed(),
        sparse_speed(),
    ]
    page = folder / "race.md"
    page.write_text(TITLE + "\n".join(sheet.markdown() for sheet in sheets))
    written = [write_runs(runs, folder / "race.csv"), page]
    written.append(draw(board, streams, folder / "images" / "race.png"))
    console = Console(width=max(110, 50 + 13 * len(streams)))
    for sheet in sheets:
        console.print(sheet.table())
    console.print(f"{time.perf_counter() - began:.0f} seconds in all; wrote")
    for path in written:
        console.print(f"  {path}")


if __name__ == "__main__":
    main()
