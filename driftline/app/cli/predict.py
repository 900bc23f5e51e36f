"""``driftline predict``: predictions of a model for new rows."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from driftline.app.cli.options import FILE, FILLS, FOLLOW, MODEL, names, reading, table_of

if TYPE_CHECKING:
    from driftline.app.runs import Model
    from driftline.app.runs.stop import Stop
    from driftline.app.tables import Encoder, Table

__all__ = ["predict"]

#: The exit status if some rows were not predicted.
PROBLEMS = 3


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
    "--missing",
    type=click.Choice(FILLS),
    help="What a missing or infinite value becomes; by default what the model was learned with.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A CSV file to write to; by default standard output.",
)
@click.option(
    "--proba", is_flag=True, help="Add a column for the probability of every class, level or tag."
)
@FOLLOW
@click.option("--quiet", is_flag=True, help="Do not print the score.")
def predict(model: Path, file: Path, out: Path | None, quiet: bool, **options: Any) -> None:
    """Predict the rows of FILE by MODEL, which stays as it is.

    MODEL was written by driftline run. Columns are found by name, in any order. If the label is
    among them, it is compared with what is predicted, and the score is printed.

    A row that cannot be predicted has no prediction, and the reason in the column problem; the exit
    status is 3 then. Rows without a label are predicted, and have no loss.

    With --follow rows are predicted as they are appended to FILE, and Ctrl-C is the end.
    """
    from driftline.app.runs.lock import ResultFolder
    from driftline.files import drafted

    if out is None:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        problems = _predict(model, file, sys.stdout, quiet, options)
    else:
        with ResultFolder(out.parent):
            # a pipe, or what somebody may wait for, is written to at once
            if options["follow"] or (out.exists() and not out.is_file()):
                problems = _write(out, model, file, quiet, options)
            else:
                with drafted(out) as draft:
                    problems = _write(draft, model, file, quiet, options)
    if problems:
        raise click.exceptions.Exit(PROBLEMS)


def _write(out: Path, model: Path, file: Path, quiet: bool, options: dict[str, Any]) -> int:
    # As in a run: JSON may have halves of characters.
    with out.open("w", encoding="utf-8", errors="surrogatepass", newline="") as target:
        return _predict(model, file, target, quiet, options)


def _predict(path: Path, file: Path, target: TextIO, quiet: bool, options: dict[str, Any]) -> int:
    """Write predictions; return how many rows have none. A file is followed until a signal."""
    from driftline.app.runs import load_model
    from driftline.app.runs.stop import Stop

    model = load_model(path)
    if not options["follow"]:
        return _write_rows(model, table_of(file, options), target, quiet, options)
    with Stop() as stop:
        table = stop.read(lambda: table_of(file, options, wait=True))
        if table is not None:
            _write_rows(model, table, target, quiet, options, stop)
    raise click.exceptions.Exit(128 + stop.asked)


def _write_rows(
    model: Model,
    table: Table,
    target: TextIO,
    quiet: bool,
    options: dict[str, Any],
    stop: Stop | None = None,
) -> int:
    """Write predictions of all rows, or of those before a signal; return how many have none."""
    import numpy as np

    from driftline.app.cli.screen import amount, console_of
    from driftline.app.runs import Reading
    from driftline.app.runs.predictions import PredictionFile
    from driftline.committee.pooling import log_chances
    from driftline.errors import InputError

    ignore = names(options["ignore"])
    columns, labels = model.encoder.columns, model.encoder.labels
    if options["missing"] is not None and not isinstance(columns, int):
        columns.fill_by(options["missing"])
    table.hurry()
    source = Reading(
        table, model.encoder, ignore=ignore, labelled=None, learning=False, lenient=True
    )
    asked: list[str] = []
    if options["proba"]:
        asked = list(labels.outcomes)  # as they are now: labels of the file may be new
        if not asked:
            raise InputError("a ranking has no probabilities: leave --proba out")
        if model.encoder.key is not None:
            raise InputError("--proba is for one learner, not for many by key: leave it out")
    writer = PredictionFile(
        target.write, model, source.bound.labelled, problems=True, chances=asked
    )
    writer.begin()
    target.flush()
    total, count, problems = 0.0, 0, list[str]()
    for rounds in source if stop is None else stop.each(source):
        made: Any = model.predict(rounds.inputs, rounds.keys) if rounds.played else []
        losses = None
        if rounds.labels is not None:
            # A class that the model does not know is a mistake, whatever was predicted.
            losses = np.array(
                [model.loss_of(p, y) for p, y in zip(made, rounds.labels, strict=True)]
            )
            known = slice(None) if rounds.unlabelled is None else ~rounds.unlabelled
            total += float(losses[known].sum())
            count += len(losses[known])
        problems += rounds.problems.values()
        chances = None
        if asked:
            chances = np.ones((0, len(asked)))
            if rounds.played:
                chances = np.exp(log_chances(model.learner, rounds.inputs))
        writer.write(made, rounds, losses, chances)
        target.flush()  # a row out for a row in, if rows come slowly
    notes = console_of(err=True)
    if problems:
        counted = f"{len(problems):,} of {writer.next - 1:,} rows"
        advice = (
            f"; {_advice(model.encoder)}"
            if any("the value is missing" in p for p in problems)
            else ""
        )
        notes.print(
            f"{counted} could not be predicted, see the column problem; the first: {problems[0]}"
            f"{advice}",
            soft_wrap=True,
        )
    if not quiet and source.bound.labelled and count:
        share = amount(labels, total / count).strip()
        notes.print(f"mean loss {share}, of {count:,} rounds")
    return len(problems)


def _advice(encoder: Encoder) -> str:
    """Say how missing values could be filled in."""
    columns = encoder.columns
    means = not isinstance(columns, int) and columns.counts.any()
    return f"say --missing zero{' or --missing mean' if means else ''} to fill values in"
