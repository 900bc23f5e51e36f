"""How a run begins: anew, from its checkpoint, or not at all since all rows are done."""

from __future__ import annotations

import filecmp
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from driftline.app.runs.checkpoint import Checkpoint, Extent
from driftline.app.runs.inputs import UNSAID, Found, Input, find, is_pipe
from driftline.app.runs.run import Run
from driftline.app.tables import Piece, Table
from driftline.errors import InputError

__all__ = ["MODEL", "RESULTS", "Command", "Start", "begin"]

MODEL = "model.driftline"
#: The output files of a run beside its model.
RESULTS = (
    "predictions.csv",
    "journal.driftline",
    "summary.json",
    "trace.npz",
    "inputs.npz",
    "report.html",
    "keys.csv",
)

ELSE = "begin again by --fresh, or name another folder by --out"


@dataclass(frozen=True)
class Command:
    """The arguments of a run.

    ``opened`` opens the file, each time it is called; ``options`` are those on learning; ``skip``
    is None if it was not given. With ``follow`` rows are waited for at the end of the file: from
    the start if it is called with ``wait=True``, else when the table is asked to.
    """

    file: Path
    folder: Path
    opened: Callable[..., Table]
    options: Mapping[str, Any]
    resume: Path | None = None
    skip: int | None = None
    fresh: bool = False
    follow: bool = False

    @property
    def input(self) -> Input:
        """The file, as an input from which nothing was read yet."""
        return Input.of(self.file, UNSAID if self.skip is None else self.skip)


class Start(NamedTuple):
    """How a run begins.

    ``state`` is the checkpoint, None for a new model. ``known`` is the record of the file,
    ``earlier`` are the other inputs. The table is at the position where reading goes on; ``head``
    is a piece that was read from there already. ``continued`` is whether the run of the checkpoint
    goes on, and not a new run with its model; ``anew`` whether nothing in the folder belongs to the
    run; ``done`` whether there is nothing to do.
    """

    state: Checkpoint | None
    table: Table
    known: Input
    earlier: tuple[Input, ...] = ()
    head: Piece | None = None
    continued: bool = False
    anew: bool = False
    done: bool = False


def begin(command: Command) -> Start:
    """Return how a run begins, in a folder from which drafts were deleted."""
    model = command.folder / MODEL
    held = model.exists() and not command.fresh
    if not held and not command.fresh:
        _refuse_results(command.folder, model)
    if command.resume is not None:
        return _resumed(command, model, command.resume, held)
    if held:
        return _again(command, Checkpoint.read(model))
    return Start(None, command.opened(wait=True), command.input, anew=True)


def _refuse_results(folder: Path, model: Path) -> None:
    """Refuse to overwrite results that have no model beside them."""
    there = [name for name in RESULTS if (folder / name).exists()]
    if there and not model.exists():
        raise InputError(f"{folder} holds {there[0]}, but no model that it could be of: {ELSE}")


def _again(command: Command, state: Checkpoint) -> Start:
    """Go on with the run in the folder, if its options are the same."""
    folder, known = command.folder, state.inputs
    if not known or state.options is None:
        raise InputError(
            f"{folder} holds a model that was learned by another command: go on from it by "
            f"--resume {folder / MODEL}, {ELSE}"
        )
    if is_pipe(command.file):
        raise InputError(
            f"{folder} holds the run over {known[-1].name}, and a pipe cannot be taken up by the "
            f"same command: go on with rows to come by --resume {folder / MODEL}, {ELSE}"
        )
    if command.input.place in [one.place for one in known]:
        _refuse_options(command, state.options)
    found = find(command.file, known, command.opened, ELSE)
    if found is None:
        raise InputError(
            f"{folder} holds the run over another table called {known[-1].name}: {ELSE}"
        )
    _refuse_options(command, state.options)
    start = _going_on(command, state, found)
    if not start.done and found.number < len(known) - 1:
        raise InputError(
            f"the run in {folder} has gone on with {known[-1].name}: say --resume "
            f"{folder / MODEL} to learn from more rows of {command.file}, or {ELSE}"
        )
    return start


def _refuse_options(command: Command, before: Mapping[str, Any]) -> None:
    """Refuse to go on with other options."""
    other = [name for name, value in command.options.items() if before.get(name) != value]
    if other:
        said = ", ".join(f"--{name}" for name in other)
        raise InputError(
            f"{command.folder} holds a run that was begun with another {said}: say the same as "
            f"before to go on with it, {ELSE}"
        )


def _resumed(command: Command, model: Path, resume: Path, held: bool) -> Start:
    """Go on from a model, in its own folder or in another one."""
    anew, own = False, model.exists() and model.samefile(resume)
    if own and command.fresh:
        raise InputError(
            f"--fresh would take {resume} away, which --resume goes on from: name another folder "
            "by --out"
        )
    if own or (held and filecmp.cmp(model, resume, shallow=False)):
        state = Checkpoint.read(model)
        found = _found(command, state)
    elif held:
        state = Checkpoint.read(model)
        found = _found(command, state) if state.origin == _digest(resume) else None
        if found is None or found.number < len(state.inputs) - 1:
            raise InputError(
                f"{command.folder} holds another run than {resume} goes on from: name another "
                "folder by --out"
            )
    else:
        anew, before = True, Checkpoint.read(resume)
        state = replace(
            before,
            run=Run(before.run.model),
            options=None,
            origin=_digest(resume),
            predictions=Extent(),
            audit=None,
            finished=True,
        )
        found = _found(command, state)
    if found is not None:
        return _going_on(command, state, found)._replace(anew=anew)
    others = _others(state, command.input)
    return Start(state, command.opened(wait=True), command.input, others, anew=anew)


def _found(command: Command, state: Checkpoint) -> Found | None:
    """Look for the file among the inputs; for a pipe, ``--skip`` must say where it goes on."""
    if is_pipe(command.file) and command.skip is None and not state.finished:
        last = state.inputs[-1]
        if not last.place:
            raise InputError(
                f"the run over a pipe was stopped after {last.mark.rows:,} rows: say --skip "
                f"{last.mark.rows} if these come again, or --skip 0 if they do not"
            )
    other = "" if command.skip == 0 else "say --skip 0 if it is another table now"
    return find(command.file, state.inputs, command.opened, other)


def _going_on(command: Command, state: Checkpoint, found: Found) -> Start:
    """Go on where reading of the file stopped."""
    known, last = state.inputs[found.number], found.number == len(state.inputs) - 1
    rows = known.mark.rows
    if command.resume is not None and command.skip not in (None, known.skip, rows):
        raise InputError(
            f"--skip {command.skip} would pass over other rows than the {rows:,} of {command.file} "
            "that were learned from: leave it out to go on after these"
        )
    skip = known.skip if command.skip is None else command.skip
    if command.follow:
        found.table.follow()
    start = Start(state, found.table, known._replace(skip=skip), _others(state, known))
    if last and not state.finished:
        return start._replace(continued=True)
    head = None if command.follow else next(found.table.pieces(), None)
    done = not command.follow and (head is None or len(head) == known.mark.drop)
    place = command.input.place
    if not done and place != known.place:  # a longer copy: keep the old record
        grown = start.known._replace(place=place, name=command.input.name)
        start = start._replace(known=grown, earlier=(*start.earlier, known))
    return start._replace(head=head, done=done)


def _others(state: Checkpoint, known: Input) -> tuple[Input, ...]:
    """Return the inputs other than the given one."""
    return tuple(
        one for one in state.inputs if one != known and not (one.place and one.place == known.place)
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
