"""``driftline scales``: the trade-off in the scale of a regularizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["scales"]


@click.command(short_help="Play convolutional losses at several scales of their regularizer.")
@click.option(
    "--task",
    type=click.Choice(["ndcg", "precision", "multiclass", "multilabel"]),
    default="ndcg",
    show_default=True,
    help="What is predicted, on a planted stream.",
)
@click.option("--rounds", type=click.IntRange(1), default=5000, show_default=True)
@click.option("--flips", type=click.IntRange(0), default=1, show_default=True)
@click.option("--trials", type=click.IntRange(1), default=3, show_default=True)
@click.option(
    "--diameter",
    type=click.FloatRange(0.0, min_open=True),
    default=20.0,
    show_default=True,
    help="Of the ball.",
)
@click.option(
    "--scale",
    "given",
    multiple=True,
    type=click.FloatRange(0.0, min_open=True),
    help="May be given several times; by default seven from 0.01 to 10.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/sweep"),
    show_default=True,
    help="Folder for the figure and the CSV.",
)
def scales(out: Path, given: tuple[float, ...], **options: Any) -> None:
    """Play convolutional losses at several scales of their regularizer.

    A larger scale means larger steps, so that the drift costs less, and a larger surrogate loss of
    the comparator. Shown are the learner's expected target loss, that surrogate loss, and the
    worst-case bound which adds up both.
    """
    from rich.console import Console
    from rich.progress import Progress

    from driftline import paper
    from driftline.errors import InputError

    console = Console()
    if not console.is_terminal:
        console = Console(width=110)
    try:
        settings = paper.SweepSettings(scales=given or paper.SCALES, **options)
        _, regularizers = paper.SWEEPS[settings.task]
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("Playing", total=len(settings.scales) * len(regularizers))
            points = paper.sweep(settings, lambda: bar.advance(task))
        files = [
            paper.write_sweep(settings, points, out),
            paper.draw_sweep(settings, points, out),
        ]
    except InputError as error:
        raise click.ClickException(str(error)) from error
    console.print(paper.sweep_table(settings, points))
    console.print("Wrote", highlight=False)
    for path in files:
        console.print(f"  {path}", highlight=False)
