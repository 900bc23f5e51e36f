"""``driftline run``: learn from a table."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from driftline.app.cli.learners import LEARNERS, TABLE
from driftline.app.cli.options import (
    DELAY,
    FILE,
    FOLLOW,
    MODEL,
    about_columns,
    check_delay,
    command_arguments,
    names,
    reading,
    reading_arguments,
    refuse_fixed,
    table_options,
    with_command,
)
from driftline.app.cli.trouble import FAILURES, Trouble, failing

if TYPE_CHECKING:
    from rich.console import Console

    from driftline.app.runs import Model, Reading, Run
    from driftline.app.runs.audit_buffer import AuditBuffer
    from driftline.app.runs.guarantee import Guarantee
    from driftline.app.runs.lock import Lock
    from driftline.app.runs.outputs import Outputs
    from driftline.app.runs.start import Start
    from driftline.app.runs.stop import Stop

__all__ = ["run"]

#: Options that do not change what is learned.
ANYWAY = ("resume", "out", "fresh", "follow", "as_json", "quiet", "example")


@click.command(
    short_help="Learn from the rows of a file and keep the score.",
    epilog=TABLE
    + """

\b
Examples:
  driftline run --example
  driftline run weather.csv
  driftline run weather.csv.gz --label rain --ignore station,date
  zcat big.csv.gz | driftline run - --label class --out results/big
  driftline run emotions.arff --label 'amazed-*,happy-*'
  driftline run sensors.csv --follow
  driftline run events.csv --label left --key customer
  driftline run scored.csv --label left --champion predicted
  driftline run tomorrow.csv --resume results/run/weather/model.driftline
""",
)
@click.argument("file", type=FILE, required=False)
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
    "--key",
    metavar="NAME",
    help="The column that says whose a row is: every customer, sensor or shop has a learner of its "
    "own, with auto and fast a light line-up. It is no input.",
)
@click.option(
    "--start",
    type=click.Choice(["shared", "zero"]),
    help="How a key begins: as a learner over all keys is by then, the default where its learner "
    "can, or at zero.",
)
@click.option(
    "--champion",
    metavar="NAME",
    help="The column that has a model's predictions, by the names of labels, and is empty where it "
    "made none: they are followed while they are good, and guarded. For classes, with auto, fast "
    "and best; it is no input.",
)
@click.option(
    "--resume", type=MODEL, help="Go on learning from this model; columns are found by name."
)
@click.option(
    "--skip",
    type=click.IntRange(0),
    help="Pass over so many rows of the file first; by default those that were learned from.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for predictions, model, journal, summary and report; by default results/run/NAME, "
    "or with --resume the folder of the model, where all are continued; not that of another run.",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="Begin again, and take away what an earlier run left in the folder.",
)
@click.option(
    "--certify/--no-certify",
    default=None,
    help="Whether the run is kept and audited; by default if it fits into 64 megabytes.",
)
@FOLLOW
@DELAY
@click.option(
    "--proba",
    is_flag=True,
    help="Add a column to the predictions for the probability of every class, level or tag, before "
    "the row was learned from.",
)
@click.option(
    "--sets",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    metavar="SHARE",
    help="Also give every row a set of classes or levels, such that this share of the rows has its "
    "label in it, whatever changes: 0.9, say.",
)
@click.option("--trace", is_flag=True, help="Also write what happened in every round.")
@click.option(
    "--example",
    is_flag=True,
    help="Write a small table that changes, weather.csv, to this folder, and learn from it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", is_flag=True, help="No progress, no notes.")
def run(file: Path | None, **options: Any) -> None:
    """Learn from the rows of FILE, in order, and keep the score.

    Every row is predicted first and learned from then: the score is that of predictions made
    before the label was used. Only what columns hold, their categories and the classes are looked
    up in the first piece, some thousand rows, before it is played.

    FILE is CSV, JSON lines, ARFF, svmlight or Parquet, plain or compressed by gzip; - is standard
    input. It is read in pieces and may be larger than memory.

    The score is printed beside two baselines that look at no inputs: the last label again, and
    the most frequent one so far. Text columns become a feature per category.

    The run is saved every few seconds, and at Ctrl-C. However it ends, the same command goes on
    where it was; when all rows were learned from, there is nothing to do. With --follow the end of
    the file is not the end of the run: rows are learned from as they are appended.
    """
    if options["resume"] is not None:
        refuse_fixed(("learner", "seed", "sets", "key", "start", "champion"))
    if options["example"] or file is None:
        file = _example(file, options)
    with with_command(file, options):
        _run(file, options)


def _example(file: Path | None, options: dict[str, Any]) -> Path:
    """Write the example, and return where it is."""
    from driftline.app.cli.screen import console_of
    from driftline.app.tables import example

    if not options["example"]:
        raise click.UsageError("Missing argument 'FILE'; or say --example to try a table of ours.")
    if file is not None:
        raise click.UsageError("--example is a table of its own: leave the file out, or --example.")
    if options["follow"]:
        raise click.UsageError("--example is a table that does not grow: leave --follow out.")
    path = Path(example.NAME)
    if example.write_example(path) and not options["quiet"]:
        said = f"wrote {path}: {example.ROWS:,} rows, in which the weather changes three times"
        console_of(err=True).print(said, style="dim")
    return path


class Started(NamedTuple):
    """All that a run needs."""

    source: Reading
    run: Run
    outputs: Outputs
    notes: Console


def _run(file: Path, options: dict[str, Any]) -> None:
    from driftline.app.cli.screen import console_of
    from driftline.app.runs.lock import Lock
    from driftline.app.runs.outputs import sweep
    from driftline.app.runs.stop import Stop

    notes, resume = console_of(err=True), options["resume"]
    usual = Path("results/run") / _stem(file) if resume is None else resume.parent
    folder = options["out"] or usual
    again = reading_arguments(options) + ["--proba"] * options["proba"]
    again += [] if options["delay"] is None else ["--delay", str(options["delay"])]
    with ExitStack() as opened:
        with Stop() as stop:
            lock = opened.enter_context(Lock(folder))
            sweep(lock)
            # First rows may be long in coming.
            begun = stop.read(lambda: _begun(file, lock, options, notes))
            if begun is None:
                raise click.exceptions.Exit(128 + stop.asked)
            start, started = begun
            if started is not None:
                opened.enter_context(started.outputs)
                trouble = _learn(started, stop, options["quiet"])
        if started is None:
            _tell_done(file, folder, start, options)
        else:
            _end(file, started, trouble, stop.asked, again, options)


def _begun(
    file: Path, lock: Lock, options: dict[str, Any], notes: Console
) -> tuple[Start, Started | None]:
    """Return how the run begins, and all that it needs; None if there is nothing to do."""
    start = _start(file, lock.folder, options)
    return start, None if start.done else _begin(file, lock, start, options, notes)


def _start(file: Path, folder: Path, options: dict[str, Any]) -> Start:
    """Return how the run begins."""
    from driftline.app.cli.options import opener_of
    from driftline.app.runs.start import Command, begin

    learning = _learning(options)
    opened = opener_of(file, options)
    resume, skip, fresh = options["resume"], options["skip"], options["fresh"]
    follow = options["follow"]
    return begin(Command(file, folder, opened, learning, resume, skip, fresh, follow))


def _learning(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options on learning, which must not change when a run goes on."""
    named = {"form": "format", "highest_grade": "highest-grade", "no_header": "no-header"}
    return {named.get(name, name): options[name] for name in sorted(options.keys() - {*ANYWAY})}


def _begin(
    file: Path, lock: Lock, start: Start, options: dict[str, Any], notes: Console
) -> Started:
    """Guess the columns of the table; make a new model, or load the one to go on with."""
    from driftline.app.runs import Reading, Run, new_model
    from driftline.app.runs.outputs import Outputs
    from driftline.app.runs.schedule import SECONDS
    from driftline.app.tables import guess
    from driftline.errors import InputError

    table, state, quiet = start.table, start.state, options["quiet"]
    learning = _learning(options)
    ignore, head, skip = names(options["ignore"]), start.head, 0
    if state is None:
        head = next(table.pieces(), None)
        if head is None:
            raise InputError(f"{table.name} has no rows after its header")
        encoder, said = guess(table, head, table_options(options, ignore))
        given = (options[name] for name in ("seed", "sets", "start"))
        run = Run(new_model(options["learner"], encoder, *given))
        for note in () if quiet else said:
            notes.print(note, style="dim", soft_wrap=True)
    else:
        table.hurry()
        run = state.run if start.continued else state.run.next()
    late = check_delay(options, run.model)
    if run.model.encoder.key is None:
        run.audit_buffer = _audit_buffer(options)
    else:
        _check_keyed(options)
    run.proba, asked = options["proba"], options["proba"] or run.model.sets is not None
    if asked:
        _check_probabilities(run.model)
    run.probabilities = asked
    rows = start.known.mark.rows
    if not rows:
        skip = options["skip"] or 0
    elif not quiet:
        notes.print(f"going on after row {rows:,} of {file}", style="dim", soft_wrap=True)
    queries: Sequence[str] = ()
    if rows and state is not None and state.inputs[-1].mark == start.known.mark:
        queries = state.queries
    source = Reading(
        table,
        run.model.encoder,
        head,
        ignore=ignore,
        skip=skip,
        start=start.known.mark,
        queries=queries,
        unlabelled=options["unlabelled"],
        idle=SECONDS,
        delay=options["delay"],
    )
    return Started(source, run, Outputs(lock, run, start, learning, late), notes)


def _check_keyed(options: dict[str, Any]) -> None:
    """Refuse options that are for one learner."""
    from driftline.errors import InputError

    for name in ("proba", "certify", "trace"):
        if options[name]:
            raise InputError(f"--{name} is for one learner, not for many by --key: leave it out")


def _check_probabilities(model: Model) -> None:
    """Refuse probabilities of labels that have none, or are not known yet."""
    from driftline.errors import InputError
    from driftline.learner import gives_probabilities

    if not gives_probabilities(model.learner.task):
        raise InputError("a ranking has no probabilities: leave --proba out")
    if not model.encoder.labels.outcomes:
        raise InputError(
            "none of the first rows has a label, so that it is not known which columns "
            "probabilities have: leave --proba and --sets out, or begin with rows that have a label"
        )


def _end(
    file: Path,
    started: Started,
    trouble: Exception | None,
    signal: int,
    again: list[str],
    options: dict[str, Any],
) -> None:
    """Write and print the results, after the last row, an error or a signal."""
    from driftline.app.tables.live import FileChangedError
    from driftline.app.tables.table_error import TableError
    from driftline.errors import InputError

    _, run, outputs, notes = started
    if signal and trouble is None and not run.rounds:  # while rows were waited for
        raise click.exceptions.Exit(128 + signal)
    predicted = run.rows or (run.unlabelled and options["unlabelled"] == "predict")
    if not (run.rounds or (predicted and run.model.rounds)):  # by what was learned before
        none = f": none of {run.unlabelled:,} rows has a label" if run.unlabelled else ""
        if run.rows:
            none = f": no label comes by the last of its {run.rows:,} rows"
        raise trouble or InputError(f"{started.source.table.name} has no rows to learn from{none}")
    if trouble is not None or signal:
        rows = outputs.known.mark.rows
        what = f"What was learned from {rows:,} rows is saved. To go on:"
        words = _words(file, again, outputs, rows, isinstance(trouble, FileChangedError))
        notes.print(f"{what}\n  {shlex.join(words)}", soft_wrap=True)
    if trouble is not None:
        if isinstance(trouble, TableError):
            trouble.begun = True
        raise trouble
    try:
        if not signal:
            _refuse_constant(run, outputs.model)
        with failing(f"what was learned is saved in {outputs.model}"):
            _tell(file, started, bool(signal), options)
    except BaseException:
        if outputs.pending:
            outputs.save()
        raise
    if signal:
        raise click.exceptions.Exit(128 + signal)


def _words(
    file: Path, again: list[str], outputs: Outputs, rows: int, changed: bool = False
) -> list[str]:
    """Return the command to go on: the same again, unless the rows learned from are gone.

    Those of a pipe are, and those of a file may be that has changed while it was followed.
    """
    from driftline.app.runs.inputs import is_pipe

    words = ["driftline", "run", str(file), *again, "--resume", str(outputs.model)]
    if changed:
        return [*words, "--follow"]
    if is_pipe(file):
        return [*words, "--skip", str(rows)]
    return ["driftline", *command_arguments(click.get_current_context())]


def _audit_buffer(options: dict[str, Any]) -> AuditBuffer | None:
    """Return the buffer of rounds for an audit, None if there is no audit."""
    from driftline.app.runs.audit_buffer import MOST, AuditBuffer

    if options["certify"] or options["trace"]:  # explicitly asked for: without a limit
        return AuditBuffer(None)
    return AuditBuffer(MOST) if options["certify"] is None else None


def _learn(started: Started, stop: Stop, quiet: bool) -> Exception | None:
    """Learn until the end, an error or a signal; return the error.

    What was learned is saved then, except at the end of the table soon after a checkpoint.
    """
    from driftline.app.cli.progress import Progress
    from driftline.errors import InputError

    source, run, outputs, notes = started
    trouble: Exception | None = None
    with Progress(notes, quiet) as bar:
        try:
            for rounds in stop.each(source):
                with failing(lambda: _lost(outputs)):  # a half-learned batch is not saved
                    if not rounds.idle:
                        outputs.add(rounds, run.learn(rounds), source.position())
                    if outputs.pending and outputs.schedule.due:
                        outputs.save()
                bar.show(source.table.progress, run.rows, run.share, outputs.saved)
        except (InputError, *FAILURES) as error:
            trouble = error
    if outputs.pending and (trouble is not None or stop.asked or outputs.schedule.due):
        with failing(lambda: _lost(outputs)):
            outputs.save()
    return trouble


def _tell_done(file: Path, folder: Path, start: Start, options: dict[str, Any]) -> None:
    """Say that there is nothing to do."""
    from driftline.app.cli.screen import console_of
    from driftline.app.runs.outputs import SUMMARY, sweep_audit

    sweep_audit(folder)
    if options["as_json"] and (folder / SUMMARY).exists():
        click.echo((folder / SUMMARY).read_text(encoding="utf-8"), nl=False)
        return
    rows = f"all {start.known.mark.rows:,} rows of {file} were learned from"
    where = folder if folder.is_dir() else options["resume"]
    console_of().print(f"Nothing to do: {rows}, see {where}", soft_wrap=True)


def _tell(file: Path, started: Started, stopped: bool, options: dict[str, Any]) -> None:
    """Audit the run, write the rest, and print the score."""
    from driftline.app.cli.screen import (
        beaten_lines,
        console_of,
        far_lines,
        guarantee_lines,
        printable,
        score_lines,
        set_lines,
        told_lines,
    )
    from driftline.app.runs.guarantee import guarantee_of
    from driftline.app.runs.input_changes import changed_inputs
    from driftline.app.runs.keyed_model import KeyedModel
    from driftline.reports import (
        WEIGHTED,
        alarms_in_words,
        champion_in_words,
        inputs_in_words,
        keys_in_words,
    )

    source, run, outputs, notes = started
    if run.audit_buffer is not None and not run.rounds:
        run.audit_buffer.drop("no label came in this run")
    with notes.status("Auditing"):
        guarantee = guarantee_of(run.model, run.audit_buffer, bool(options["certify"]))
    inputs = changed_inputs(run)
    summary = run.summary() | {
        "changed_inputs": None if inputs is None else [one.to_dict() for one in inputs],
        "file": str(file),
        "interrupted": stopped,
        "seconds": {"reading": source.seconds, "learning": run.seconds},
        "certificate": guarantee.to_dict(),
    }
    files = outputs.finish(summary, options["trace"], inputs)
    if not stopped:
        outputs.save(finished=True)
    if options["as_json"]:
        click.echo(json.dumps(summary, indent=2))
        return
    screen = console_of()
    lines = beaten_lines(run) + score_lines(run) + set_lines(run)
    if (champion := summary["champion"]) is not None and run.rounds:
        codec = run.model.encoder.labels
        unit = WEIGHTED if run.model.weighs else codec.unit
        lines.insert(0, champion_in_words(champion, unit))
    width = screen.width if screen.is_terminal else None
    if isinstance(run.model, KeyedModel):
        told = keys_in_words(run.model.table())
        told[0] += " since the first of the model" * (run.model.rounds != run.rounds)
        lines += told_lines("keys", told, None)
    else:
        said = alarms_in_words(run.alarms, run.alarm_times)
        lines += told_lines("alarms", [said[0].lower() + said[1:]], width)
    lines += told_lines("inputs", [] if inputs is None else inputs_in_words(inputs), width)
    lines += far_lines(run.model.far_outside)
    lines += [f"  {remark}" for remark in run.model.encoder.labels.alike]
    if run.late.untold:
        never = run.late.untold - run.late.waiting
        said = f"{run.late.waiting:,} labels have not come yet"
        lines.append(f"  late         {said}" + (f", {never:,} never come" if never else ""))
    if run.unlabelled:
        what = {"skip": "left out", "predict": "predicted only"}.get(options["unlabelled"], "")
        lines.append(f"  unlabelled   {run.unlabelled:,} rows were {what or 'not learned from'}")
    lines += guarantee_lines(guarantee, _where(guarantee, run))
    saving = outputs.schedule
    times = f"reading {source.seconds:.1f} s, learning {run.seconds:.1f} s"
    count = f"{saving.count} checkpoint{'s' * (saving.count > 1)}"
    lines.append(f"{times}, saving {saving.seconds:.1f} s in {count}")
    lines += ["Wrote", *(f"  {path}" for path in files)]
    screen.print(printable("\n".join(lines)), soft_wrap=True)


def _lost(outputs: Outputs) -> str:
    """Say what is saved when a run fails."""
    if not outputs.saved:
        return "nothing of this run is saved"
    return f"what was learned from {outputs.saved:,} rows is saved: the same command goes on there"


def _where(guarantee: Guarantee, run: Run) -> str:
    """Say which rounds a certificate covers, unless these are all rounds."""
    if run.model.rounds == run.rounds:
        return ""
    own = guarantee.rounds == run.rounds
    return ", of this run alone" if own else ", since the first round of the model"


def _stem(file: Path) -> str:
    """Return the name of a file without the suffixes of its format.

    >>> _stem(Path("data/2024.01.csv.gz")), _stem(Path("-"))
    ('2024.01', 'stdin')
    """
    from driftline.app.tables.opening import ENDINGS

    known = {".gz", ".csv", ".tsv", ".txt", *ENDINGS}
    name = "stdin" if str(file) == "-" else file.name
    while Path(name).suffix.lower() in known:
        name = Path(name).stem
    return name


def _refuse_constant(run: Run, saved: Path) -> None:
    labels = run.model.encoder.labels
    if labels.grows and len(labels.values) < 2:
        raise Trouble(
            f"the label {labels.names[0]!r} is {labels.values[0]!r} in all {run.model.rounds:,} "
            "rows: there is nothing to learn; name another column by --label, or go on with rows "
            f"of other classes by --resume {saved}"
        )
