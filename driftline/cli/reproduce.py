"""``driftline reproduce``: the paper's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["reproduce"]


@click.command()
@click.option(
    "--data",
    multiple=True,
    type=click.Choice(["synthetic", "digits", "mnist"]),
    default=("synthetic", "digits"),
    show_default=True,
    help="Streams to run on; may be given several times. MNIST is read from the folder mnist/ "
    "in DRIFTLINE_DATA.",
)
@click.option(
    "--flips",
    multiple=True,
    type=click.IntRange(0),
    default=(1, 10, 100),
    show_default=True,
    help="How often the world changes; may be given several times.",
)
@click.option("--rounds", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--trials", type=click.IntRange(1), default=10, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/reproduce"),
    show_default=True,
    help="Folder for the figures, the CSV and the JSON.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=None, help="Processes; by default one per core."
)
def reproduce(out: Path, jobs: int | None, **options: Any) -> None:
    """Run the experiment of the paper, with what the library adds to it.

    Constant, AdaGrad and Polyak rates with the base-2 logistic loss and the uniform mix, as
    in the paper; then, apart, the decoders and rates that the library recommends, and plain
    SGD at several steps.
    """
    from rich.console import Console
    from rich.progress import Progress

    from driftline import experiments
    from driftline.errors import InputError

    console = Console()
    if not console.is_terminal:
        console = Console(width=110)
    try:
        settings = experiments.Settings(**options)
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("Playing streams", total=len(list(settings.units())))
            results = experiments.reproduce(settings, jobs, lambda: bar.advance(task))
        files = results.write(out) + experiments.draw(results, out)
    except InputError as error:
        raise click.ClickException(str(error)) from error
    for table in experiments.tables(results):
        console.print(table)
        console.print()
    console.print("Wrote", highlight=False)
    for path in files:
        console.print(f"  {path}", highlight=False)
