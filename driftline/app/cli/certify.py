"""``driftline certify``: a recorded run against its bounds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from driftline.app.cli.traces import read_trace

if TYPE_CHECKING:
    import numpy as np

    from driftline.comparators import Piecewise

__all__ = ["certify"]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Replay a recorded run and hold its loss to every bound.",
    epilog="""
\b
Examples:
  driftline run weather.csv --label rain --trace
  driftline certify results/run/weather
  driftline certify trace.npz --data stream.npz --comparator weights.npz
""",
)
@click.argument("run", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--data",
    type=FILE,
    help="An .npz file with the arrays inputs and labels, for a trace without a folder of a run.",
)
@click.option(
    "--comparator",
    type=FILE,
    help="An .npz file with the array weights: scores x features for weights that never change; "
    "segments x scores x features, with the first rounds of the segments as starts, for "
    "weights that do. A committee's members act on scaled inputs, and so must these; without "
    "a comparator they are held to weights of 0.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="A file to draw the certificate to.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def certify(
    run: Path, data: Path | None, comparator: Path | None, plot: Path | None, as_json: bool
) -> None:
    """Replay a RUN and hold its total loss to every bound.

    RUN is the folder of a run that was made with --trace; or a file written by Trace.save or
    CommitteeTrace.save, with its stream as --data. The weights are replayed from its steps, and
    losses, risks and gradients are computed anew from the data; of a committee also its weights
    and its votes. Of a folder without a trace, what its audit found at the end is shown.

    The exit status is 1 if the audit found something, or if a bound is exceeded.
    """
    from driftline.errors import InputError

    try:
        folder = _folder(run, data)
        if folder is not None and not (folder / "trace.npz").exists():
            _recorded(folder, as_json)
            return
        weights = None if comparator is None else _comparator(comparator)
        if folder is not None:
            made = _of_folder(folder, weights)
        else:
            assert data is not None
            made = _of_trace(run, data, weights)
        if plot is not None:
            made.plot(plot)
    except InputError as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps(_plain(made.to_dict()), indent=2) if as_json else str(made))
    if plot is not None:
        click.echo(f"Wrote {plot}", err=True)
    if not made.valid:
        raise click.exceptions.Exit(1)


def _folder(run: Path, data: Path | None) -> Path | None:
    """Return the folder of the run, None if a trace is given with its data."""
    from driftline.errors import InputError

    if data is not None:
        if run.is_dir():
            raise InputError(f"{run} is a folder, which has its own data: leave --data out")
        return None
    if run.is_dir():
        return run
    read_trace(run)  # or it is said that it is none
    if not (run.parent / "inputs.npz").exists() or run.name != "trace.npz":
        raise InputError(
            f"{run} is a trace without its inputs: name the folder of a run made with --trace, or "
            "give inputs and labels by --data"
        )
    return run.parent


def _of_trace(trace: Path, data: Path, comparator: Piecewise | None) -> Any:
    """Return the certificate of a trace and its stream."""
    from driftline.certificates import certify as make
    from driftline.certificates import kind_of
    from driftline.errors import InputError

    recorded = read_trace(trace)
    alone = not hasattr(recorded, "members")
    if alone and comparator is None and kind_of(recorded).steps:
        raise InputError("a single learner's run needs a comparator: expected --comparator")
    stream = _arrays(data, ("inputs", "labels"), ("sample_weight",))
    given, weights = (stream["inputs"], stream["labels"]), stream.get("sample_weight")
    return make(recorded, comparator, *given, sample_weight=weights)


def _of_folder(folder: Path, comparator: Piecewise | None) -> Any:
    """Return the certificate of a run from its folder, by default against weights in hindsight."""
    from driftline.app.runs import CommitteeModel, load_model
    from driftline.app.runs.audit_buffer import AuditBuffer
    from driftline.app.runs.audit_file import load_inputs
    from driftline.app.runs.guarantee import audited
    from driftline.app.runs.outputs import INPUTS, TRACE
    from driftline.app.runs.start import MODEL
    from driftline.certificates import certify as make
    from driftline.errors import InputError

    for name in (MODEL, INPUTS):
        if not (folder / name).exists():
            raise InputError(
                f"{folder} has no {name}, which belongs to its trace: expected the folder of a run "
                "made with --trace; make it again by driftline run --trace --fresh"
            )
    trace, rounds = read_trace(folder / TRACE), load_inputs(folder / INPUTS)
    if comparator is not None:
        weights = rounds.weights
        return make(trace, comparator, rounds.inputs, rounds.labels, sample_weight=weights)
    buffer = AuditBuffer(None)
    buffer.rounds, buffer.traces = [rounds], [trace]
    model = load_model(folder / MODEL)
    assert isinstance(model, CommitteeModel)  # no run by key has a trace
    return audited(model, buffer, thorough=True)[0]


def _recorded(folder: Path, as_json: bool) -> None:
    """Show what the audit at the end of a run found, which left no trace."""
    from driftline.app.runs.outputs import SUMMARY
    from driftline.errors import InputError

    again = "to replay it now, make it again by driftline run --trace --fresh"
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        found = summary["certificate"]
        lines = [f"{found['rounds']:,} rounds, paid {found['paid']:,.6g}"]
        bounds = {**found["bounds"], "committee": found["bound"]}
        lines += [f"  {form}: at most {b:,.6g}" for form, b in bounds.items() if b is not None]
        lines += list(found["findings"]) or ["audit: every round replayed, nothing to object to"]
        is_audited, valid, reason = found["audited"], found["valid"], found["reason"]
        if found.get("keys"):  # no run by key has a trace
            again = f"what is known of their bounds is in {folder / SUMMARY}"
    except FileNotFoundError:
        raise InputError(
            f"{folder} holds no finished run: expected the folder that driftline run wrote to"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / SUMMARY} is damaged or was edited: {error}") from error
    if not is_audited:
        raise InputError(f"{folder} has no trace and was not audited: {reason}; {again}")
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo("\n".join([f"as recorded at the end of the run, {folder}", *lines]))
    click.echo(f"There is no trace in {folder}: {again}", err=True)
    if not valid:
        raise click.exceptions.Exit(1)


def _arrays(
    path: Path, names: tuple[str, ...], more: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    """Return arrays of a file by name; those in ``more`` are optional."""
    import numpy as np

    from driftline.errors import InputError

    try:
        with np.load(path, allow_pickle=False) as file:
            have = {name: file[name] for name in file.files}
    except Exception as error:  # NumPy's own advice is about pickles, which are never read
        raise InputError(
            f"{path} is not an .npz file of plain arrays: expected {' and '.join(names)}, as "
            "numpy.savez writes them"
        ) from error
    missing = [name for name in names if name not in have]
    if missing:
        raise InputError(
            f"{path} has no array {' and no '.join(missing)}, only {', '.join(have) or 'nothing'}"
        )
    return {name: have[name] for name in (*names, *more) if name in have}


def _comparator(path: Path) -> Piecewise:
    from driftline.comparators import Fixed, Piecewise
    from driftline.errors import InputError

    arrays = _arrays(path, ("weights",), ("starts",))
    weights, starts = arrays["weights"], arrays.get("starts")
    if weights.dtype.kind not in "fiu":
        raise InputError(f"weights in {path} must be numbers, but are of type {weights.dtype}")
    if weights.ndim == 2 and starts is None:
        return Fixed(weights)
    if weights.ndim == 3 and starts is not None:
        return Piecewise(starts, weights)
    raise InputError(
        f"weights in {path} must have the shape scores x features, or segments x scores x features "
        f"beside an array starts; but they have shape {weights.shape} "
        f"{'without' if starts is None else 'with'} starts"
    )


def _plain(value: Any) -> Any:
    """Return a value for JSON: numbers that are not finite become null."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
