"""``python -m benchmarks.race``: play, compare, and write what was found."""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.console import Console

from benchmarks.race.board import Board
from benchmarks.race.figure import draw
from benchmarks.race.page import page
from benchmarks.race.play import race
from benchmarks.race.report import (
    SPEED_STREAM,
    by_stream,
    everyone,
    probabilities,
    standings,
    write_runs,
)
from benchmarks.race.speed import dense_speed, sparse_speed, speed_of
from benchmarks.race.streams import FIRST_SEED, STREAMS, WIDE, available, rows_of


@click.command()
@click.option(
    "--seeds", type=click.IntRange(1), default=10, show_default=True, help="How many, from 100 on."
)
@click.option("--full", is_flag=True, help="All rows and seeds for slow peers too.")
@click.option("--java", is_flag=True, help="MOA too: needs Java and CapyMOA.")
@click.option(
    "--known", is_flag=True, help="Peers do not play: only runs kept in the folder count."
)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
@click.option(
    "--stream",
    "chosen",
    multiple=True,
    type=click.Choice(list(STREAMS)),
    help="Only these, and no tables of speed on other rows.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results/race"),
    show_default=True,
)
def main(
    seeds: int,
    full: bool,
    java: bool,
    known: bool,
    jobs: int,
    chosen: tuple[str, ...],
    folder: Path,
) -> None:
    """Race against other libraries: the same rows, predicted and then learned from."""
    began = time.perf_counter()
    streams = [name for name in STREAMS if name in chosen] or available()
    numbers = [FIRST_SEED + i for i in range(seeds)]
    runs, left = race(streams, numbers, folder, full=full, java=java, known=known, jobs=jobs)
    board = Board(runs)
    first = standings(board, streams)
    rest = [by_stream(board, streams), probabilities(board, streams)]
    timed = [name for name in (SPEED_STREAM, *WIDE) if name in streams]
    rest += [speed_of(name, rows_of(name, FIRST_SEED)) for name in timed]
    rest += [] if chosen else [dense_speed(), sparse_speed()]
    sheets = [*rest, *everyone(board, streams)]
    text = page(board, streams, first, sheets, seeds=numbers, full=full, left=left)
    written = [write_runs(runs, folder / "race.csv"), folder / "race.md"]
    written[-1].write_text(text)
    written.append(draw(board, streams, folder / "images" / "race.png"))
    console = Console(width=200)
    for sheet in (first, *rest):
        console.print(sheet.table())
    console.print(f"{time.perf_counter() - began:.0f} seconds in all; wrote")
    for path in written:
        console.print(f"  {path}")


if __name__ == "__main__":
    main()
