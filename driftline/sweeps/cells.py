"""The cells of a sweep: one learner over one stream by one seed, and how they are played."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftline.errors import InputError
from driftline.learner import Learner
from driftline.sweeps.shared import MOST, Totals, play_shared, sharing_of
from driftline.sweeps.table import SweepRow
from driftline.version import __version__

__all__ = ["Cell", "Unit", "key_of", "learner_digest", "play", "units_of"]


class Cell(NamedTuple):
    """One learner, one stream, one seed, by their places and names."""

    place: int
    learner: str
    stream: str
    seed: int
    key: str = ""


class Unit(NamedTuple):
    """Cells that are played by one call, on one stream by one seed; if several, in one pass."""

    cells: tuple[Cell, ...]
    learners: tuple[Learner, ...]
    stream: Any
    seed: int


def learner_digest(learner: Learner) -> str:
    """Return a digest of the saved form of a learner."""
    about, arrays = learner.to_saved()  # type: ignore[attr-defined]
    text = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        text.update(repr((name, array.shape, array.dtype.str)).encode() + array.tobytes())
    return text.hexdigest()


def key_of(learner: str, stream: str, seed: int) -> str:
    """Return the key of a cell in a file, from digests of its learner and its stream."""
    text = json.dumps([__version__, learner, stream, seed])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def units_of(cells: Sequence[tuple[Cell, Learner, Any]], jobs: int, shared: bool) -> Iterator[Unit]:
    """Put cells together that share passes: at most a job's part of them, and those of one pass."""
    groups: dict[Hashable, list[tuple[Cell, Learner, Any]]] = {}
    known: dict[str, Hashable] = {}
    for given in cells:
        cell, learner, _ = given
        if cell.learner not in known:
            known[cell.learner] = sharing_of(learner) if shared else None
        common = known[cell.learner]
        alone: Hashable = cell.place if common is None else (cell.stream, cell.seed, common)
        groups.setdefault(alone, []).append(given)
    most = max(1, min(MOST, math.ceil(len(cells) / jobs)))
    for group in groups.values():
        for start in range(0, len(group), most):
            own, learners, streams = zip(*group[start : start + most], strict=True)
            yield Unit(own, learners, streams[0], own[0].seed)


def play(unit: Unit) -> list[SweepRow]:
    """Play the cells of a unit; what is refused is an error in its row."""
    begun = time.perf_counter()
    try:
        stream = unit.stream(unit.seed) if callable(unit.stream) else unit.stream
    except Exception as error:
        return [_failed(cell, error) for cell in unit.cells]
    made: list[Totals | None] = [None] * len(unit.cells)
    if len(unit.cells) > 1 and getattr(stream, "sample_weight", None) is None:
        try:
            made = play_shared(unit.learners, *_both(stream), unit.seed)
        except InputError:  # for one reason or several: single runs say which
            made = [None] * len(unit.cells)
    seconds = (time.perf_counter() - begun) / len(unit.cells)
    rows = []
    for cell, learner, totals in zip(unit.cells, unit.learners, made, strict=True):
        if totals is not None:
            rows.append(SweepRow(cell.learner, cell.stream, cell.seed, *totals, seconds))
        else:
            rows.append(_alone(cell, learner, stream))
    return rows


def _both(stream: Any) -> tuple[Any, Any]:
    """Return inputs and labels of a stream or a pair."""
    if isinstance(stream, tuple) and len(stream) == 2:
        return stream
    try:
        return stream.inputs, stream.labels
    except AttributeError:
        raise InputError(
            f"expected a stream, or inputs and labels, but got {stream!r:.80}"
        ) from None


def _alone(cell: Cell, learner: Learner, stream: Any) -> SweepRow:
    """Play one cell by a copy of its learner."""
    begun = time.perf_counter()
    try:
        given = stream if isinstance(stream, tuple) else (stream,)
        trace = learner.copy().run(*given, seed=cell.seed)
    except Exception as error:
        return _failed(cell, error)
    columns = (trace.target_loss, trace.risk, getattr(trace, "loss", None))
    sums = [math.nan if column is None else float(np.sum(column)) for column in columns]
    totals = Totals(len(trace), sums[0], sums[1], sums[2])
    seconds = time.perf_counter() - begun
    return SweepRow(cell.learner, cell.stream, cell.seed, *totals, seconds)


def _failed(cell: Cell, error: Exception) -> SweepRow:
    said = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return SweepRow(cell.learner, cell.stream, cell.seed, error=said)
