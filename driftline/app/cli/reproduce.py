"""``driftline reproduce``: the paper's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["reproduce"]


@click.command()
@click.option(
    "--task",
    type=click.Choice(
        [
            "classification",
            "multilabel",
            "ordinal",
            "ranking",
            "matching",
            "sequence",
            "ndcg",
            "precision",
            "cost",
        ]
    ),
    default="classification",
    show_default=True,
    help="What is predicted; classification is the paper's experiment.",
)
@click.option(
    "--data",
    multiple=True,
    help="Streams to run on; may be given several times. classification: synthetic, digits (both "
    "by default), mnist; all others: planted (the default); multilabel: emotions, bibtex, "
    "tmc2007; ranking: vowel, pendigits; sequence: ocr; ndcg: ltr. Real sets are read from the "
    "folder DRIFTLINE_DATA.",
)
@click.option(
    "--flips",
    multiple=True,
    type=click.IntRange(0),
    default=(1, 10, 100),
    show_default=True,
    help="How often the world changes; may be given several times.",
)
@click.option(
    "--rounds", type=click.IntRange(1), default=None, help="By default 10000 for the paper's."
)
@click.option(
    "--trials", type=click.IntRange(1), default=None, help="By default 10 for the paper's."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder for the figures, the CSV and the JSON; by default results/reproduce, or "
    "results/TASK for other tasks.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=None, help="Processes; by default one per core."
)
def reproduce(out: Path | None, jobs: int | None, **options: Any) -> None:
    """Run the experiment of the paper, with what the library adds to it.

    Constant, AdaGrad and Polyak rates with the base-2 logistic loss and the uniform mix, as
    in the paper; then, apart, the decoders and rates that the library recommends, and plain
    SGD at several steps. With another --task, the same rates on a drifting stream of that task,
    with the random decoder of the theorem and with the best label; sequences are played with
    and without transitions, relevance (ndcg, precision) and costs by convolutional losses
    beside usual ones.
    """
    from rich.console import Console
    from rich.progress import Progress

    from driftline import paper
    from driftline.errors import InputError
    from driftline.reports import write_report

    console = Console()
    if not console.is_terminal:
        console = Console(width=110)
    try:
        given = {name: value for name, value in options.items() if value is not None}
        settings = paper.Settings(**given)
        usual = "reproduce" if settings.task == "classification" else settings.task
        out = Path("results") / usual if out is None else out
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("Playing streams", total=len(list(settings.units())))
            results = paper.reproduce(settings, jobs, lambda: bar.advance(task))
        files = results.write(out) + paper.draw(results, out)
        sections = paper.sections_of(results)
        files.append(write_report(sections, out / "report.html", f"Reproduced: {settings.task}"))
        certified = paper.certify_one(settings, out)
    except InputError as error:
        raise click.ClickException(str(error)) from error
    for table in paper.tables(results):
        console.print(table)
        console.print()
    if certified is not None:
        certificate, path = certified
        files.append(path)
        console.print("One run of Polyak's rate, held to its bounds:", highlight=False)
        console.print(str(certificate), highlight=False)
        console.print()
    console.print("Wrote", highlight=False)
    for path in files:
        console.print(f"  {path}", highlight=False)
