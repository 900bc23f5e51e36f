"""``driftline run``: learn from a person's own table."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import click

from driftline.cli.learners import LEARNERS, TABLE
from driftline.cli.options import (
    FILE,
    MODEL,
    about_columns,
    names,
    reading,
    refuse_settled,
    said_again,
    table_of,
    wishes_of,
)
from driftline.cli.trouble import FAILURES, Trouble, failing

__all__ = ["run"]


@click.command(
    short_help="Learn from the rows of a file and keep the score.",
    epilog=TABLE
    + """

\b
Examples:
  driftline run weather.csv
  driftline run weather.csv.gz --label rain --ignore station,date
  zcat big.csv.gz | driftline run - --label class --out results/big
  driftline run emotions.arff --label 'amazed-*,happy-*'
  driftline run tomorrow.csv --resume results/run/weather/model.driftline
""",
)
@click.argument("file", type=FILE)
@about_columns
@reading
@click.option(
    "--learner",
    type=click.Choice(list(LEARNERS)),
    default="auto",
    show_default=True,
    help="See the list below.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--resume", type=MODEL, help="Go on learning from this model; columns are found by name."
)
@click.option(
    "--skip", type=click.IntRange(0), default=0, help="Pass over so many rows of the file first."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for predictions, model, journal, summary and report; by default results/run/NAME, "
    "or with --resume the folder of the model, where all are continued; not that of another run.",
)
@click.option(
    "--certify/--no-certify",
    default=None,
    help="Whether the run is kept and audited; by default if it fits into 64 megabytes.",
)
@click.option("--trace", is_flag=True, help="Also write what happened in every round.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", is_flag=True, help="No progress, no notes.")
def run(file: Path, **options: Any) -> None:
    """Learn from the rows of FILE, in order, and keep the score.

    Every row is predicted first and learned from then: the score is that of predictions made
    before the label was used. Only what columns hold, their categories and the classes are looked
    up in the first piece, some thousand rows, before it is played.

    FILE is CSV, ARFF, svmlight or Parquet, plain or compressed by gzip; - is standard input. It is
    read in pieces and may be larger than memory.

    The score is printed beside two baselines that look at no inputs: the last label again, and
    the most frequent one so far. Text columns become a feature per category. Ctrl-C saves
    what was learned.
    """
    if options["resume"] is not None:
        refuse_settled(("learner", "seed"))
    _run(file, options)


class Started(NamedTuple):
    """All that a run needs."""

    table: Any
    source: Any
    run: Any
    outputs: Any
    notes: Any


def _run(file: Path, options: dict[str, Any]) -> None:
    again = said_again(options)
    started = _begin(file, options)
    run, outputs = started.run, started.outputs
    with outputs:
        trouble, stopped = _learn(started, options["quiet"])
        if not run.rounds:
            from driftline.errors import InputError

            raise trouble or InputError(f"{started.table.name} has no rows to learn from")
        with failing(_lost(outputs)):
            saved = outputs.save(run)
    if trouble is not None or stopped:
        words = ["driftline", "run", str(file), *again, "--resume", str(saved)]
        words += ["--skip", str(options["skip"] + run.rows)]
        what = f"What was learned from {run.rows:,} rows is saved. To go on:"
        started.notes.print(f"{what}\n  {shlex.join(words)}", soft_wrap=True)
    if trouble is not None:
        raise trouble
    if not stopped:
        _refuse_constant(run, saved)
    with failing(f"what was learned is saved in {saved}"):
        _tell(file, started, stopped, options)
    if stopped:
        raise click.exceptions.Exit(130)


def _begin(file: Path, options: dict[str, Any]) -> Started:
    """Open the table, find out what is in it, and make or load the model."""
    from driftline.cli.screen import console_of
    from driftline.errors import InputError
    from driftline.runs import Model, Reading, Run
    from driftline.runs.outputs import Outputs
    from driftline.tables import guess

    notes, resume = console_of(err=True), options["resume"]
    ignore, table = names(options.pop("ignore")), table_of(file, options)
    wishes, head = wishes_of(options, ignore), None
    if resume is None:
        head = next(table.pieces(), None)
        if head is None:
            raise InputError(f"{table.name} has no rows after its header")
        encoder, said = guess(table, head, wishes)
        model = Model.new(options["learner"], encoder, options["seed"])
        for note in () if options["quiet"] else said:
            notes.print(note, style="dim", soft_wrap=True)
    else:
        model = Model.load(resume)
    source = Reading(table, model.encoder, head, ignore=ignore, skip=options["skip"])
    usual = Path("results/run") / _stem(file) if resume is None else resume.parent
    outputs = Outputs(options["out"] or usual, model, resume)
    run = Run(model, _kept(options), outputs.journal())
    return Started(table, source, run, outputs, notes)


def _kept(options: dict[str, Any]) -> Any:
    """Return where rounds are kept for an audit, None if nowhere."""
    from driftline.runs.kept import MOST, Kept

    if options["certify"] or options["trace"]:  # who asks for them has the room
        return Kept(None)
    return Kept(MOST) if options["certify"] is None else None


def _learn(started: Started, quiet: bool) -> tuple[Exception | None, bool]:
    """Learn until the end, an error or Ctrl-C; return the error, and whether it was Ctrl-C."""
    from driftline.cli.progress import Progress
    from driftline.errors import InputError
    from driftline.runs.stop import Stop

    table, source, run, outputs, notes = started
    lost = _lost(outputs)  # what was half learned cannot be saved
    with Stop() as stop, Progress(notes, quiet) as bar:
        try:
            for rounds in source:
                with stop.later(), failing(lost):
                    outputs.add(rounds, run.learn(rounds))
                bar.show(table.progress, run.rows, run.share)
        except KeyboardInterrupt:
            if stop.forced:
                raise
            return None, True
        except (InputError, *FAILURES) as error:
            return error, False
    return None, False


def _tell(file: Path, started: Started, stopped: bool, options: dict[str, Any]) -> None:
    """Audit the run, write the rest, and print the score."""
    from driftline.cli.screen import console_of, promise_lines, score_lines
    from driftline.runs.promise import promise_of

    _, source, run, outputs, notes = started
    with notes.status("Auditing"):
        promise = promise_of(run.model, run.kept, bool(options["certify"]))
    summary = run.summary() | {
        "file": str(file),
        "interrupted": stopped,
        "seconds": {"reading": source.seconds, "learning": run.seconds},
        "certificate": promise.to_dict(),
    }
    files = outputs.finish(run, summary, options["trace"])
    if options["as_json"]:
        click.echo(json.dumps(summary, indent=2))
        return
    screen = console_of()
    lines = score_lines(run.model.encoder.labels.kind, run.scores, run.rounds)
    lines += promise_lines(promise, _where(promise, run))
    lines.append(f"reading {source.seconds:.1f} s, learning {run.seconds:.1f} s")
    lines += ["Wrote", *(f"  {path}" for path in files)]
    screen.print("\n".join(lines), soft_wrap=True)


def _lost(outputs: Any) -> str:
    return f"nothing of this run is saved, and what was in {outputs.folder} is as it was"


def _where(promise: Any, run: Any) -> str:
    """Say of which rounds a certificate is, unless these are all there are."""
    if run.model.rounds == run.rounds:
        return ""
    own = promise.rounds == run.rounds
    return ", of this run alone" if own else ", since the first round of the model"


def _stem(file: Path) -> str:
    """Return the name of a file without endings that say how it is written.

    >>> _stem(Path("data/2024.01.csv.gz")), _stem(Path("-"))
    ('2024.01', 'stdin')
    """
    from driftline.tables.opening import ENDINGS

    known = {".gz", ".csv", ".tsv", ".txt", *ENDINGS}
    name = "stdin" if str(file) == "-" else file.name
    while Path(name).suffix.lower() in known:
        name = Path(name).stem
    return name


def _refuse_constant(run: Any, saved: Path) -> None:
    labels = run.model.encoder.labels
    if labels.kind == "classes" and len(labels.values) < 2:
        raise Trouble(
            f"the label {labels.names[0]!r} is {labels.values[0]!r} in all {run.model.rounds:,} "
            "rows: there is nothing to learn; name another column by --label, or go on with rows "
            f"of other classes by --resume {saved}"
        )
