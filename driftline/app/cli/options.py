"""Options of the commands on tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from driftline.app.runs import Model
    from driftline.app.tables import Encoder, Options, Piece, Table
    from driftline.app.tables.table_error import TableError

__all__ = [
    "DELAY",
    "FILE",
    "FILLS",
    "FOLLOW",
    "LEARNERS",
    "MODEL",
    "about_columns",
    "check_delay",
    "chosen_learners",
    "guessed",
    "names",
    "reading",
    "refuse_fixed",
    "opener_of",
    "reading_arguments",
    "command_arguments",
    "table_of",
    "table_options",
    "with_command",
]

FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
MODEL = click.Path(exists=True, dir_okay=False, path_type=Path)
#: What may become of missing values.
FILLS = ["refuse", "zero", "mean"]  # of inputs.missing: help must not import NumPy

#: The option of commands that go on as their file grows.
FOLLOW = click.option(
    "--follow",
    is_flag=True,
    help="Go on with the rows that are appended to FILE, CSV or JSON lines, until Ctrl-C.",
)

#: The option of commands on labels that come late.
DELAY = click.option(
    "--delay",
    type=click.IntRange(0),
    metavar="ROWS",
    help="Let every label come so many rows later: its row is predicted at once, and learned from "
    "then. See --delay-column where a file knows when labels came.",
)

#: The option of commands on several learners.
LEARNERS = click.option(
    "--with",
    "learners",
    default="auto,polyak,free,adagrad,constant",
    show_default=True,
    metavar="NAMES",
    help="The learners, with commas between.",
)

Command = TypeVar("Command", bound=Callable[..., object])

READING = (
    click.option(
        "--format",
        "form",
        type=click.Choice(["csv", "jsonl", "arff", "svmlight", "parquet"]),
        help="By default told by the ending of the name; all else is CSV.",
    ),
    click.option(
        "--delimiter",
        metavar="SIGN",
        help="What parts the values of a CSV: one sign, or comma, semicolon, tab, pipe, space. By "
        "default told by the first line.",
    ),
    click.option("--comment", metavar="SIGN", help="How lines of a CSV begin that are left out."),
    click.option(
        "--no-header", is_flag=True, help="The first line is a row; columns are called 1, 2, ..."
    ),
    click.option(
        "--encoding", default="utf-8", show_default=True, help="Such as latin-1 or cp1252."
    ),
    click.option(
        "--features",
        type=click.IntRange(1),
        help="How many features an svmlight file has, if it comes by standard input.",
    ),
    click.option(
        "--ignore", default="", metavar="NAMES", help="Columns to leave out: a,b or id_*."
    ),
)
COLUMNS = (
    click.option(
        "--label",
        default="",
        metavar="NAMES",
        help="The column to predict; several for tags: a,b,c or tag_*. By default the one called "
        "label, class, target or y, else the last.",
    ),
    click.option(
        "--task",
        type=click.Choice(["classes", "tags", "levels", "ranking"]),
        help="classes: one of several; tags: a column of 0 or 1 each; levels: ordered classes; "
        "ranking: a grade for every document of a query. By default guessed.",
    ),
    click.option(
        "--levels",
        default="",
        metavar="NAMES",
        help="The levels from the lowest to the highest: low,middle,high.",
    ),
    click.option(
        "--query", metavar="NAME", help="The column that says which rows are ranked together."
    ),
    click.option("--highest-grade", type=click.IntRange(1), help="Of a ranking."),
    click.option("--text", default="", metavar="NAMES", help="Numbers to be taken as text."),
    click.option(
        "--missing",
        type=click.Choice(FILLS),
        default="refuse",
        show_default=True,
        help="What a missing or infinite value becomes; mean is that of the rows before.",
    ),
    click.option(
        "--unlabelled",
        type=click.Choice(["refuse", "skip", "predict"]),
        default="refuse",
        show_default=True,
        help="What becomes of rows without a label: skip leaves them out, predict predicts them "
        "without learning.",
    ),
    click.option(
        "--weight", metavar="NAME", help="The column that says how often a row counts, 0 or more."
    ),
    click.option(
        "--balance",
        is_flag=True,
        help="Let rows count by how rare their class has been so far, 100 times at most.",
    ),
    click.option(
        "--abstain",
        type=click.FloatRange(0.001, 0.999),
        metavar="COST",
        help="What no answer costs, where a wrong one costs 1: doubtful rows get none, and go to a "
        "person. By default every row has an answer. For classes.",
    ),
    click.option(
        "--delay-column",
        metavar="NAME",
        help="The column that says after how many more rows the label of a row comes; empty or "
        "negative: never. It is no input.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        default=".",
        show_default=True,
        help="What stands before the fraction of a number.",
    ),
    click.option(
        "--time",
        metavar="NAME",
        help="A column of dates or times, for the report: when alarms and changes were. It is no "
        "input.",
    ),
)

#: Options that are fixed by a model, by name.
FIXED = (
    "label",
    "task",
    "levels",
    "query",
    "highest_grade",
    "text",
    "missing",
    "decimal",
    "time",
    "weight",
    "balance",
    "abstain",
    "delay_column",
)


def reading(command: Command) -> Command:
    """Add the options on how a file is read."""
    for option in reversed(READING):
        command = option(command)
    return command


def about_columns(command: Command) -> Command:
    """Add the options on what columns mean."""
    for option in reversed(COLUMNS):
        command = option(command)
    return command


def names(text: str) -> list[str]:
    """Return names from a comma-separated list.

    >>> names(" a, b,")
    ['a', 'b']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def guessed(file: Path, options: dict[str, Any]) -> tuple[Table, Piece, Encoder, list[str]]:
    """Open the table; return it with its first piece, what its columns are, and notes on that."""
    from driftline.app.tables import guess
    from driftline.errors import InputError

    table = table_of(file, options)
    head = next(table.pieces(), None)
    if head is None:
        raise InputError(f"{table.name} has no rows after its header")
    return table, head, *guess(table, head, table_options(options, names(options["ignore"])))


def chosen_learners(options: dict[str, Any]) -> list[str]:
    """Return the names of ``--with``, each once."""
    from driftline.errors import InputError

    wanted = list(dict.fromkeys(names(options["learners"])))
    if not wanted:
        raise InputError("expected learners to compare, as in --with auto,polyak")
    return wanted


def table_of(file: Path, options: dict[str, Any], wait: bool = False) -> Table:
    """Open the table; with ``wait`` and ``--follow``, rows are waited for at its end."""
    return opener_of(file, options, marked=False)(wait=wait)


def opener_of(file: Path, options: dict[str, Any], marked: bool = True) -> Callable[..., Table]:
    """Return a function that opens the table; ``marked`` is whether it has positions.

    With ``--follow``, ``wait=True`` waits for rows at the end of the file from the start.
    """
    from driftline.app import tables
    from driftline.app.tables.live import Follow

    said = {
        name: options[name] for name in ("form", "delimiter", "encoding", "features", "comment")
    }
    said["ignore"] = names(options["ignore"])
    said |= {"header": not options["no_header"], "marked": marked}

    def opened(wait: bool = False) -> Table:
        follow = Follow.NO
        if options.get("follow"):
            follow = Follow.YES if wait else Follow.LATER
        return tables.open_table(file, follow=follow, **said)

    return opened


def refuse_fixed(more: Sequence[str] = ()) -> None:
    """Refuse options on columns, and those in ``more``, which are fixed by the model."""
    from driftline.errors import InputError

    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in {*FIXED, *more}
        and context.get_parameter_source(option.name) == ParameterSource.COMMANDLINE
    ]
    if given:
        raise InputError(
            f"{', '.join(given)} cannot be given with --resume: the model has fixed it; leave it "
            "out, or begin a new run"
        )


def check_delay(options: dict[str, Any], model: Model) -> bool:
    """Return whether labels come late, if options and model go together."""
    from driftline.delays import MOST
    from driftline.errors import InputError

    delay, encoder = options["delay"], model.encoder
    if delay is not None and encoder.key is not None:
        raise InputError("--delay does not go with --key yet: leave one of them out")
    if delay is None and encoder.delay is None:
        if waits := model.waits:
            raise InputError(
                f"labels of {waits:,} rows are still to come to this model: say by --delay after "
                "how many rows those of the next rows come, which may be 0"
            )
        return False
    if delay is not None and encoder.delay is not None:
        raise InputError(
            f"labels come as the column {encoder.delay!r} says: leave --delay out, or ignore the "
            "column"
        )
    if delay is not None and delay > MOST:
        raise InputError(f"--delay {delay} is too long: expected {MOST:,} rows at most")
    if encoder.query is not None:
        raise InputError("--delay is for rows that are learned from one by one, not for a ranking")
    if model.balance is not None:
        raise InputError(
            "--balance counts labels as rows come, and --delay lets these come later: leave one of "
            "them out"
        )
    return True


def reading_arguments(options: dict[str, Any]) -> list[str]:
    """Return the options on reading as command-line arguments."""
    made = ["--no-header"] if options["no_header"] else []
    usual: dict[str, str | None] = {
        "format": None,
        "delimiter": None,
        "encoding": "utf-8",
        "features": None,
        "ignore": "",
    }
    usual |= {"unlabelled": "refuse", "comment": None}
    for name, value in usual.items():
        given = options["form" if name == "format" else name]
        if given != value:
            made += [f"--{name}", str(given)]
    return made


@contextmanager
def with_command(file: Path, options: dict[str, Any]) -> Iterator[None]:
    """Add the whole command to errors of a table that know which options would help."""
    from driftline.app.tables.table_error import TableError
    from driftline.errors import InputError

    try:
        yield
    except TableError as error:
        if not error.changes or options.get("resume") is not None:  # a model has fixed its options
            raise
        whole = error if error.begun else _looked_on(file, options, error)
        if not whole.changes:
            raise whole from None
        words = ["driftline", *command_arguments(click.get_current_context(), whole.changes)]
        how = "begin again" if error.begun else "go on"
        words += ["--fresh"] if error.begun else []
        command = f"To {how} with what is suggested:\n  {shlex.join(words)}"
        raise InputError(f"{whole}\n{command}") from None


def _looked_on(file: Path, options: dict[str, Any], error: TableError) -> TableError:
    """Return an error with all that would come up after it, with what is suggested."""
    from driftline.app.runs.inputs import is_pipe
    from driftline.app.tables import guess
    from driftline.app.tables.table_error import TableError, joined
    from driftline.errors import InputError

    if is_pipe(file):
        return error
    found = [error]
    while True:
        said = {name: _said(options[name], value) for name, value in found[-1].changes.items()}
        if all(options[name] == value for name, value in said.items()):
            return joined(str(file), found)
        options = options | said
        try:
            table = table_of(file, options)
            head = next(table.pieces(), None)
            if head is not None:
                guess(table, head, table_options(options, names(options["ignore"])))
            return joined(str(file), found)
        except TableError as more:
            found.append(more)
        except InputError as other:  # which needs a decision of another kind
            made = joined(str(file), [*found, TableError(str(other))])
            made.changes = {}
            return made


def _said(before: Any, value: Any) -> Any:
    """Return the value of an option; names of columns are added to those before.

    >>> _said("a", ["b", "c,d"]), _said(None, "mean")
    ('a,b,c?d', 'mean')
    """
    if not isinstance(value, list):
        return value
    return ",".join([*names(before or ""), *(name.replace(",", "?") for name in value)])


def command_arguments(context: click.Context, changes: Mapping[str, Any] = {}) -> list[str]:
    """Return the command and its arguments as given, without ``--fresh``, and with some changes."""
    made = [context.info_name or ""]
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if param.name in changes:
            value = _said(value, changes[param.name])
        elif context.get_parameter_source(param.name or "") != ParameterSource.COMMANDLINE:
            continue
        if isinstance(param, click.Argument):
            made.insert(1, str(value))
        elif param.name != "fresh":
            flags = param.opts if value or not param.secondary_opts else param.secondary_opts
            made += flags[:1] if isinstance(value, bool) else [flags[0], str(value)]
    return made


def table_options(options: dict[str, Any], ignore: list[str]) -> Options:
    """Return the options on columns."""
    from driftline.app.tables import Options

    lists: dict[str, Any] = {name: names(options[name]) for name in ("label", "levels", "text")}
    plain = ("task", "query", "missing", "decimal", "unlabelled", "time", "weight", "balance")
    rest = {name: options[name] for name in (*plain, "abstain", "delay_column")}
    rest |= {name: options.get(name) for name in ("key", "champion")}
    return Options(**lists, **rest, ignore=ignore, highest=options["highest_grade"])
