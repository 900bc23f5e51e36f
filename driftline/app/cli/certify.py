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


@click.command()
@click.argument("trace", type=FILE)
@click.option(
    "--data", required=True, type=FILE, help="An .npz file with the arrays inputs and labels."
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
    trace: Path, data: Path, comparator: Path | None, plot: Path | None, as_json: bool
) -> None:
    """Replay the run in TRACE and hold its total loss to every bound.

    TRACE is a file written by Trace.save or CommitteeTrace.save. The weights are replayed from its
    steps, and losses, risks and gradients are computed anew from the data; of a committee also
    its weights and its votes. The exit status is 1 if the audit found something, or if a bound
    is exceeded.
    """
    from driftline.certificates import certify as make
    from driftline.certificates.recorded import makes_steps
    from driftline.errors import InputError

    try:
        recorded = read_trace(trace)
        alone = not hasattr(recorded, "members")
        if alone and comparator is None and makes_steps(recorded):
            raise InputError("a single learner's run needs a comparator: expected --comparator")
        weights = None if comparator is None else _comparator(comparator)
        stream = _arrays(data, ("inputs", "labels"))
        made = make(recorded, weights, stream["inputs"], stream["labels"])
        if plot is not None:
            made.plot(plot)
    except InputError as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps(_plain(made.to_dict()), indent=2) if as_json else str(made))
    if plot is not None:
        click.echo(f"Wrote {plot}", err=True)
    if not made.valid:
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
    except Exception as error:
        raise InputError(f"{path} is not an .npz file of plain arrays: {error}") from error
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
