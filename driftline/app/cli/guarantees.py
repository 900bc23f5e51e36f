"""``driftline guarantees``: runs beside the bounds of the theory."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["guarantees"]


@click.command()
@click.option(
    "--rounds",
    type=click.IntRange(2),
    default=1_000_000,
    show_default=True,
    help="Length of the longest stream whose labels flip half-way; an even number.",
)
@click.option(
    "--seeds",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    help="How many streams of each kind.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/guarantees"),
    show_default=True,
    help="Folder for the figures.",
)
def guarantees(rounds: int, seeds: int, out: Path) -> None:
    """Hold runs to their bounds, play the paper's extremes, draw its hinge appendix.

    Actual totals beside all bounds on drifting streams, with comparators found in hindsight.
    Labels that flip half-way, where mistakes do not grow with the number of rounds though the
    loss of all fixed weights does; the stream of the lower bound, on which every learner errs
    half of the time; and the hinge losses for which there is no theorem.
    """
    from rich.console import Console

    from driftline.errors import InputError
    from driftline.paper import guarantees as play

    console = Console()
    if not console.is_terminal:
        console = Console(width=130)
    lengths = [10**k for k in range(3, 19) if 10**k < rounds] + [rounds]
    try:
        with console.status("Playing streams"):
            constant = play.constant_mistakes(lengths, seeds, folder=out)
            lower = play.play_lower_bound(500, 500, seeds)
            hinge = play.hinge_appendix(out)
            bounds = [row.cells() for row in play.bound_table(min(rounds, 10_000))]
    except InputError as error:
        raise click.ClickException(str(error)) from error
    for rows, title, caption in (
        (
            bounds,
            "Expected target loss and its bounds, against the best comparators in hindsight",
            "each bound with the best of a few comparators; *: vacuous, no better than guessing",
        ),
        (
            constant,
            f"Labels flip half-way: mistakes, mean of {seeds} streams",
            "fixed: the least smooth hinge loss of weights that never change, and their mistakes",
        ),
        (
            lower,
            f"The lower bound: shares of all rounds, mean of {seeds} streams",
            "error: found among the streams; that of a fair coin is "
            f"{0.5 / (1000 * seeds) ** 0.5:.2g}. lower: (F + P) / 6; upper: the worst case of the "
            "theorem, where there is one",
        ),
        (
            play.hinge_numbers(),
            "Hinge losses near their critical margins",
            "ratio: the largest |g|^2 / (2 L) found; jump: of the loss; above chord: of the loss "
            "in the middle",
        ),
    ):
        console.print(play.rows_table(rows, title, caption))
        console.print()
    console.print("Wrote", highlight=False)
    for path in (out / "constant.png", hinge):
        console.print(f"  {path}", highlight=False)
