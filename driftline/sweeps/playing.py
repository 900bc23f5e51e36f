"""All learners over all streams by all seeds, through joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.files import path_of
from driftline.learner import Learner
from driftline.parts import check_flag
from driftline.sweeps.cells import Cell, Unit, key_of, learner_digest, play, units_of
from driftline.sweeps.file import SweepFile
from driftline.sweeps.table import SweepRow, SweepTable

__all__ = ["sweep"]

#: A callback that is given how many cells are done, and how many there are.
Progress = Callable[[int, int], object]


def sweep(
    learners: Learner | Mapping[str, Learner] | Iterable[Learner],
    streams: Any,
    seeds: int | Iterable[int] = 0,
    *,
    path: str | Path | None = None,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
    shared: bool = True,
) -> SweepTable:
    """Play every stream by a copy of every learner with every seed, and return all totals.

    Numbers are those of ``learner.copy().run(stream, seed=seed)``, bit for bit, whatever carries
    the work: it goes through joblib, so that ``with joblib.parallel_config("dask")`` sends it to a
    cluster. A learner that refuses a stream has an error in its row; all others are played.

    Parameters
    ----------
    learners
        Learners by name, as from :func:`~driftline.sweeps.grid`; or some, named by what they are.
    streams
        By name: streams, pairs of inputs and labels, or functions that return one of these for a
        seed. Or one of them.
    seeds
        Each is the ``seed`` of a run, and what a function is given that makes a stream.
    path
        A file that rows are appended to as they are finished. If it exists, cells that it has
        are not played again: a sweep that was killed goes on, and one may grow. A cell is known by
        its learner with its state, the content of its stream and the seed; a stream that a function
        makes by its name. Errors are tried again.
    n_jobs
        How many processes, -1 for one on each core. Default: what joblib is set to, else 1.
    progress
        Whether to draw a bar on the error stream; or a function of how many cells are done, and how
        many there are.
    shared
        Whether learners of one task share passes over dense rows: same bits, less time.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=500, flips=1, seed=0)
    >>> learners = {"auto": dl.auto(stream.task), "paper": dl.OGD(dl.losses.Logistic(stream.task))}
    >>> table = dl.sweep(learners, {"flips": stream}, seeds=[0, 1])
    >>> [(row.learner, row.seed) for row in table]
    [('auto', 0), ('auto', 1), ('paper', 0), ('paper', 1)]
    """
    own, given, numbers = _learners(learners), _streams(streams), _seeds(seeds)
    check_flag("shared", shared)
    if n_jobs is not None and (type(n_jobs) is not int or n_jobs == 0):
        raise InputError(f"n_jobs must be a whole number other than 0, or None, not {n_jobs!r:.80}")
    if not isinstance(progress, bool) and not callable(progress):
        raise InputError(f"progress must be True, False or a function, not {progress!r:.80}")
    if path is not None:
        path_of(path)
    digests, marks = [""] * len(own), [""] * len(given)
    if path is not None:
        digests = [learner_digest(learner) for learner in own.values()]
        marks = [_mark(*pair) for pair in given.items()]
    cells: list[tuple[Cell, Learner, Any]] = []
    for (name, learner), digest in zip(own.items(), digests, strict=True):
        for (title, stream), mark in zip(given.items(), marks, strict=True):
            for seed in numbers:
                key = "" if path is None else key_of(digest, mark, seed)
                cells.append((Cell(len(cells), name, title, seed, key), learner, stream))
    with ExitStack() as stack:
        file = None if path is None else stack.enter_context(SweepFile(path))
        rows = _known(file, [cell for cell, _, _ in cells])
        tell = stack.enter_context(_progress(progress, len(cells)))
        tell(len(rows), len(cells))
        left = [one for one in cells if one[0].place not in rows]
        for unit, found in _played(left, n_jobs, shared):
            if file is not None:
                file.add([cell.key for cell in unit.cells], found)
            rows.update((cell.place, row) for cell, row in zip(unit.cells, found, strict=True))
            tell(len(rows), len(cells))
    return SweepTable(rows[place] for place in range(len(cells)))


def _played(
    cells: list[tuple[Cell, Learner, Any]], n_jobs: int | None, shared: bool
) -> Iterator[tuple[Unit, list[SweepRow]]]:
    """Play cells, and yield what was found as it comes."""
    if not cells:
        return
    from joblib import Parallel, delayed, effective_n_jobs

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    units = list(units_of(cells, max(1, effective_n_jobs(n_jobs)), shared))
    calls = (delayed(_numbered)(number, unit) for number, unit in enumerate(units))
    for number, found in parallel(calls):
        yield units[number], found


def _numbered(number: int, unit: Unit) -> tuple[int, list[SweepRow]]:
    return number, play(unit)


def _known(file: SweepFile | None, cells: list[Cell]) -> dict[int, SweepRow]:
    """Return rows of the file by the places of their cells, with the names of now."""
    if file is None:
        return {}
    found = {cell: file.rows.get(cell.key) for cell in cells}
    return {
        cell.place: row._replace(learner=cell.learner, stream=cell.stream)
        for cell, row in found.items()
        if row is not None and not row.error
    }


@contextmanager
def _progress(progress: bool | Progress, total: int) -> Iterator[Progress]:
    """Yield what is told how many cells are done."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Playing", total=total)
        yield lambda done, total: bar.update(task, completed=done)


# -- what was given


def _learners(given: Any) -> dict[str, Learner]:
    """Return learners by name."""
    if isinstance(given, Learner):
        given = [given]
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Iterable) and not isinstance(given, str):
        pairs = [(repr(learner), learner) for learner in given]
    else:
        raise InputError(f"expected a learner, or learners by name, but got {given!r:.80}")
    made = _named(pairs, "learner")
    for name, learner in made.items():
        if not isinstance(learner, Learner):
            raise InputError(f"{name}: expected a learner, but got {learner!r:.80}")
    return made


def _streams(given: Any) -> dict[str, Any]:
    """Return streams by name, if each is one, a pair, or a function."""
    made = _named(list(given.items()) if isinstance(given, Mapping) else [("", given)], "stream")
    for name, stream in made.items():
        if hasattr(stream, "inputs") and hasattr(stream, "labels"):
            continue
        where = f"{name}: " if name else ""
        if not callable(stream) and not (isinstance(stream, tuple) and len(stream) == 2):
            raise InputError(
                f"{where}expected a stream, a pair of inputs and labels, or a function that makes "
                f"one from a seed, but got {type(stream).__name__}"
            )
        if not callable(stream):
            inputs, labels = (_length(part) for part in stream)
            if None not in (inputs, labels) and inputs != labels:
                raise InputError(f"{where}there are {inputs} inputs but {labels} labels")
    if list(made) == [""]:
        return {"stream": made[""]}
    return made


def _length(part: Any) -> int | None:
    shape = getattr(part, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    return len(part) if hasattr(part, "__len__") else None


def _seeds(given: Any) -> list[int]:
    """Return seeds as a list."""
    whole = isinstance(given, (int, np.integer))
    if not whole and (isinstance(given, str) or not isinstance(given, Iterable)):
        raise InputError(f"expected a seed or a list of seeds, but got {given!r:.80}")
    seeds = [given] if whole else list(given)
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise InputError(f"a seed must be a whole number of 0 or more, not {seed!r:.80}")
    if not seeds:
        raise InputError("a sweep needs at least one seed")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"a seed is there twice: {[int(seed) for seed in seeds]!s:.80}")
    return [int(seed) for seed in seeds]


def _named(pairs: list[tuple[Any, Any]], what: str) -> dict[str, Any]:
    """Return things by name, if there are any, and names are different texts."""
    if not pairs:
        raise InputError(f"a sweep needs at least one {what}")
    for name, _ in pairs:
        if not isinstance(name, str):
            raise InputError(f"the name of a {what} must be a text, not {name!r:.80}")
    made = dict(pairs)
    if len(made) < len(pairs):
        raise InputError(f"two {what}s have the same name: give a dict with different ones")
    return made


def _mark(name: str, stream: Any) -> str:
    """Return a digest of the content of a stream; of a function, its name."""
    if callable(stream) and not hasattr(stream, "inputs"):
        return f"made: {name}"
    from joblib import hash as digest

    if isinstance(stream, tuple):
        return str(digest(list(stream)))
    weights = getattr(stream, "sample_weight", None)
    return str(digest([stream.inputs, stream.labels, *([] if weights is None else [weights])]))
