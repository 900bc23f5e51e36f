"""``driftline predict``: predictions of a model for new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

import click

from driftline.app.cli.options import FILE, MODEL, names, reading, table_of

__all__ = ["predict"]


@click.command(
    short_help="Predict the rows of a file by a model.",
    epilog="""
\b
Examples:
  driftline predict results/run/weather/model.driftline tomorrow.csv
  driftline predict model.driftline - --out predictions.csv < rows.csv
""",
)
@click.argument("model", type=MODEL)
@click.argument("file", type=FILE)
@reading
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A CSV file to write to; by default standard output.",
)
@click.option("--quiet", is_flag=True, help="Do not print the score.")
def predict(model: Path, file: Path, out: Path | None, quiet: bool, **options: Any) -> None:
    """Predict the rows of FILE by MODEL, which stays as it is.

    MODEL was written by driftline run. Columns are found by name, in any order. If the label is
    among them, it is compared with what is predicted, and the score is printed.
    """
    from driftline.files import drafted

    if out is None:
        _predict(model, file, sys.stdout, quiet, options)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.exists() and not out.is_file():  # a pipe, which is written to at once
        _write(out, model, file, quiet, options)
        return
    with drafted(out) as draft:
        _write(draft, model, file, quiet, options)


def _write(out: Path, model: Path, file: Path, quiet: bool, options: dict[str, Any]) -> None:
    with out.open("w", encoding="utf-8", newline="") as target:
        _predict(model, file, target, quiet, options)


def _predict(path: Path, file: Path, target: TextIO, quiet: bool, options: dict[str, Any]) -> None:
    import numpy as np

    from driftline.app.cli.screen import amount, console_of
    from driftline.app.runs import Model, Reading
    from driftline.app.runs.predictions import PredictionFile

    model = Model.load(path)
    ignore, table = names(options["ignore"]), table_of(file, options)
    source = Reading(table, model.encoder, ignore=ignore, labelled=None, learning=False)
    labels = model.encoder.labels
    writer = PredictionFile(target.write, model, source.bound.labelled)
    writer.begin()
    total, count = 0.0, 0
    for rounds in source:
        made, losses = model.predict(rounds.inputs), None
        if rounds.labels is not None:
            # A class that the model does not know is a mistake, whatever was predicted.
            losses = np.array(
                [model.loss_of(p, y) for p, y in zip(made, rounds.labels, strict=True)]
            )
            total += float(losses.sum())
        count += rounds.played
        writer.write(made, rounds, losses)
    notes = console_of(err=True)
    if not quiet and source.bound.labelled and count:
        share = amount(labels, total / count).strip()
        notes.print(f"mean loss {share}, of {count:,} rounds")
