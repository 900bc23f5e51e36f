"""``driftline sweep``: settings of learners over one table, with several seeds, on all cores."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from driftline.app.cli.learners import TABLE
from driftline.app.cli.options import (
    FILE,
    LEARNERS,
    about_columns,
    chosen_learners,
    guessed,
    names,
    reading,
    with_command,
)

if TYPE_CHECKING:
    from driftline.app.runs import Reading
    from driftline.app.tables import Encoder
    from driftline.learner import Learner
    from driftline.sweeps import SweepTable

__all__ = ["sweep"]


@click.command(
    short_help="Try settings of learners over a file, on all cores.",
    epilog=TABLE
    + """

\b
Examples:
  driftline sweep weather.csv --label rain
  driftline sweep weather.csv --with polyak,adagrad --diameter 5,20,80 --seeds 3
  driftline sweep weather.csv --with constant --step 0.01,0.1,1 --out sweep.jsonl
""",
)
@click.argument("file", type=FILE)
@LEARNERS
@click.option(
    "--diameter",
    default="",
    metavar="NUMBERS",
    help="Of the ball: every learner of a single setting is tried with each.",
)
@click.option(
    "--step", default="", metavar="NUMBERS", help="Of the learner constant, which tries each."
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many seeds of random predictions, from 0 on.",
)
@click.option(
    "--jobs", type=int, default=-1, show_default=True, help="How many processes; -1: all cores."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that rows are appended to as they are finished. The same command goes on with it.",
)
@about_columns
@reading
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
@click.option("--quiet", is_flag=True, help="No progress, no notes.")
def sweep(file: Path, **options: Any) -> None:
    """Play FILE by settings of several learners, with several seeds, on all cores.

    All see the same rows in the same order, and predict each before they learn from it. All classes
    are known from the start, so that losses may differ a little from those of compare, where
    they come up. The whole file is kept in memory.
    """
    with with_command(file, options):
        _sweep(file, options)


def _sweep(file: Path, options: dict[str, Any]) -> None:
    from driftline.app.cli.screen import console_of
    from driftline.app.runs import Reading
    from driftline.errors import InputError
    from driftline.sweeps import sweep as play

    notes, wanted = console_of(err=True), chosen_learners(options)
    numbers = {name: _numbers(name, options[name]) for name in ("diameter", "step")}
    table, head, encoder, said = guessed(file, options)
    if encoder.delay is not None:
        raise InputError("a sweep has no late labels: use driftline compare, or ignore the column")
    _settings(encoder, wanted, numbers)  # what is refused, before the file is read
    if not options["quiet"]:
        for note in said:
            notes.print(note, style="dim", soft_wrap=True)
    ignore, unlabelled = names(options["ignore"]), options["unlabelled"]
    source = Reading(table, encoder, head, ignore=ignore, unlabelled=unlabelled)
    stream = _Table(source, encoder.balanced)
    found = play(
        _settings(encoder, wanted, numbers),
        {table.name: stream},
        range(options["seeds"]),
        path=options["out"],
        n_jobs=options["jobs"] or None,
        progress=not options["quiet"],
    )
    _show(found, options["as_json"])


def _show(found: SweepTable, as_json: bool) -> None:
    """Print the table, best rows first; in JSON, a total that is not there is null."""
    from driftline.sweeps import SweepTable

    ordered = SweepTable(sorted(found, key=lambda row: (bool(row.error), row.target_loss)))
    if as_json:
        rows = [{k: None if v != v else v for k, v in row._asdict().items()} for row in ordered]
        click.echo(json.dumps(rows, indent=2))
    else:
        click.echo(str(ordered))


class _Table:
    """All rounds of a table as a stream."""

    def __init__(self, source: Reading, balanced: bool):
        from driftline.errors import InputError
        from driftline.learner import Balance, multiplied

        inputs, labels, weights, balance = list[Any](), list[Any](), list[Any](), Balance()
        for rounds in source:
            if rounds.labels is None or not len(rounds.labels):
                continue
            own = rounds.weights
            if balanced:
                rare, balance = balance.weigh(rounds.labels)
                own = rare if own is None else multiplied(rare, own)
            inputs.append(rounds.inputs)
            labels.append(rounds.labels)
            weights.append(own)
        if not inputs:
            raise InputError("there is no row with a label: expected at least one")
        self.inputs, self.labels = _joined(inputs), _joined(labels)
        self.sample_weight = None if weights[0] is None else _joined(weights)


def _joined(pieces: list[Any]) -> Any:
    """Return pieces of rows, labels or weights one after the other."""
    import numpy as np

    if hasattr(pieces[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(pieces, format="csr")
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(pieces)
    return [one for piece in pieces for one in piece]


def _settings(
    encoder: Encoder, wanted: list[str], numbers: dict[str, list[float]]
) -> dict[str, Learner]:
    """Return learners by name, each with all numbers that it takes."""
    from driftline.committee.named import EFFORTS, named

    nothing: list[float | None] = [None]
    made: dict[str, Learner] = {}
    for name in wanted:
        balls = [] if name in EFFORTS else numbers["diameter"]
        steps = numbers["step"] if name == "constant" else []
        for diameter, step in itertools.product(balls or nothing, steps or nothing):
            given = {"diameter": diameter, "step": step}
            said = [f"{k}={v:.12g}" for k, v in given.items() if v is not None]
            made[" ".join([name, *said])] = named(
                name,
                encoder.labels.task,
                diameter=diameter,
                step=step,
                categories=encoder.categories,
            )
    return made


def _numbers(name: str, text: str) -> list[float]:
    """Return the numbers of an option, each once."""
    from driftline.errors import InputError

    try:
        return list(dict.fromkeys(float(word) for word in names(text)))
    except ValueError as error:
        raise InputError(f"--{name} takes numbers with commas between: {error}") from error
