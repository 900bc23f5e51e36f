"""A table as rounds to play: rows, or all documents of a query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from driftline.app.runs.queries import Ended, Queries
from driftline.app.tables import BEGINNING, Batch, Encoder, Mark, Piece, Table
from driftline.app.tables.columns import Memory
from driftline.errors import InputError
from driftline.typing import Inputs, Labels

__all__ = ["Position", "Reading", "Rounds"]

#: The most scores times features of rounds that are learned at once; features beyond ``WIDE`` are
#: not counted, since such rows are sparse.
MOST_WORK, WIDE = 10**8, 1024


class Rounds(NamedTuple):
    """Some rounds as a learner takes them; labels are None where there are none.

    ``played`` is the number of rounds, ``rows`` that of the table's rows in them, and ``memory``
    the state of the columns after these, None if there is none. ``unlabelled`` is which rows have
    no label, None if all have one; ``problems`` say by their places, among all rows of the piece,
    which others were refused and why. ``passed`` is how many rows without a label were left out.
    ``times`` say when each round was, None if that is not known; ``weights`` how often it counts,
    None for once; ``delays`` after how many more rounds its label comes, negative for never, None
    where all labels come at once. ``keys`` say whose each round is, None without keys.
    ``idle`` is whether these are no rounds, but a pause in which no row came.
    """

    inputs: Inputs
    labels: Labels
    played: int
    rows: int
    memory: Memory | None = None
    unlabelled: np.ndarray | None = None
    problems: Mapping[int, str] = {}
    passed: int = 0
    times: Sequence[str] | None = None
    weights: np.ndarray | None = None
    idle: bool = False
    delays: np.ndarray | None = None
    keys: Sequence[str] | None = None


class Position(NamedTuple):
    """A position: a mark in the table, and the queries that have ended before it."""

    mark: Mark
    queries: list[str]


class Reading:
    """The rounds of a table, piece by piece; ``seconds`` is the time spent reading so far.

    Parameters
    ----------
    table, encoder
        Where rows come from, and what their columns are.
    head
        The first piece, which was read already to guess the columns.
    ignore
        Columns to leave out that the encoder does not know.
    labelled
        Whether labels must be there; None if they may be missing altogether.
    learning
        Whether columns remember the rows that are read.
    skip
        How many rows are skipped, without parsing them.
    start
        The mark at which reading starts, to which the table has been moved.
    queries
        Names of queries before that, which must not come again.
    unlabelled
        What becomes of rows without a label: ``refuse``, ``skip`` to leave them out, or ``predict``
        to have them in rounds of their own, which have no labels.
    lenient
        Whether rows without a label and rows that are refused are told beside the others, and do
        not end the reading. All rows of a ranking are needed, and none of them may be refused.
    idle
        After how many seconds without a row of a pipe, or of a file that grows, idle rounds come;
        None to wait for ever.
    delay
        After how many more rounds every label comes, if the table has no column for that; None for
        labels at once.
    """

    def __init__(
        self,
        table: Table,
        encoder: Encoder,
        head: Piece | None = None,
        *,
        ignore: Sequence[str] = (),
        labelled: bool | None = True,
        learning: bool = True,
        skip: int = 0,
        start: Mark = BEGINNING,
        queries: Sequence[str] = (),
        unlabelled: str = "refuse",
        lenient: bool = False,
        idle: float | None = None,
        delay: int | None = None,
    ):
        self.delay = delay
        self.table, self.head, self.skip = table, head, skip
        self._drop = start.drop
        self._mark: Callable[[], Mark] = lambda: start
        self.lenient = table.lenient = lenient and encoder.query is None
        if unlabelled == "predict" and encoder.query is not None:
            raise InputError(
                "--unlabelled predict does not go with a ranking, whose documents are learned from "
                "together: say --unlabelled skip to leave documents without a grade out"
            )
        self.unlabelled = unlabelled
        self.bound = encoder.bind(
            table,
            ignore=ignore,
            labelled=labelled,
            learning=learning,
            gaps=self.lenient or unlabelled == "predict",
        )
        if idle is not None:
            table.pause_after(idle)
        self.queries = None if encoder.query is None else Queries(encoder.query, queries)
        self.seconds = 0.0

    def position(self) -> Callable[[], Position]:
        """Return a function for the position after the last rounds, even if more was read since."""
        mark, queries = self._mark, self.queries
        if queries is None:
            return lambda: Position(mark(), [])
        ended = queries.ended
        return lambda: Position(mark(), queries.names(ended))

    def __iter__(self) -> Iterator[Rounds]:
        """Yield rounds, and count the time it takes to make them."""
        made = self._rounds()
        while True:
            start = time.perf_counter()
            part = next(made, None)
            self.seconds += time.perf_counter() - start
            if part is None:
                return
            if part.played or part.problems or part.passed or part.idle:
                yield part

    def _rounds(self) -> Iterator[Rounds]:
        passed, left = 0, 0
        for piece in self._pieces():
            if piece is None:
                yield Rounds([], None, 0, 0, idle=True)
                continue
            drop, self._drop = self._drop, 0
            piece = piece.after(drop) if drop else piece
            if passed < self.skip:
                start = min(len(piece), self.skip - passed)
                passed, drop = passed + start, drop + start
                if start == len(piece):
                    continue
                piece = piece.after(start)
            if self.lenient:
                yield self._lenient(piece)
                continue
            piece, places = self._labelled(piece)
            if self.queries is None:
                yield from self._batches(piece, drop, places)
                continue
            began = None
            if len(piece):
                made = self.queries.add(self.bound.batch(piece))
                began = self.queries.began
            if began is not None:  # or nothing has ended
                self._mark = self.table.marker(drop + places[began])
                ended = self._gathered(made, self._memory(began))
                yield ended._replace(passed=left + places[began] - began)
                left = began - places[began]
            left += places[-1] - len(piece)
        if self.queries is not None:
            self._mark = self.table.marker()
            yield self._gathered(self.queries.end(), self._memory())._replace(passed=left)
        if passed < self.skip:
            raise InputError(
                f"{self.table.name} has only {passed} rows: {self.skip} cannot be skipped"
            )

    def _labelled(self, piece: Piece) -> tuple[Piece, Sequence[int]]:
        """Return the rows to play, and how many rows of the piece are before each and in all."""
        absent = self.bound.unlabelled(piece) if self.unlabelled == "skip" else None
        if absent is None:
            return piece, range(len(piece) + 1)
        kept = np.flatnonzero(~absent).tolist()
        return piece.take(kept), [*kept, len(piece)]

    def _batches(self, piece: Piece, drop: int, places: Sequence[int]) -> Iterator[Rounds]:
        """Yield the rows of a piece, in batches if they are much work, so that a run can be saved.

        Rows without a label are in batches of their own, and a row with a new class begins one: the
        rows before it are predicted by a learner that does not know the class. Batches do not
        depend on the first one, so that a run that goes on has the same batches.
        """
        if not len(piece):
            self._mark = self.table.marker(drop + places[-1])
            yield Rounds([], None, 0, 0, passed=places[-1])
            return
        encoder, before = self.bound.encoder, 0
        known = len(encoder.labels.values)
        batch = self.bound.batch(piece)
        step = max(1, MOST_WORK // (min(encoder.features, WIDE) * encoder.labels.outputs))
        absent = batch.unlabelled
        changes = set() if absent is None else {*(np.flatnonzero(np.diff(absent)) + 1).tolist()}
        if encoder.labels.grows and batch.labels is not None:
            changes |= _new_classes(batch.labels, absent, known)
        for start, stop in pairwise(sorted({0, *changes, len(piece)})):
            labelled = batch.labels is not None and (absent is None or not absent[start])
            for a in range(start, stop, step):
                b = min(a + step, stop)
                self._mark = self.table.marker(drop + places[b])
                labels = batch.labels[a:b] if labelled else None  # type: ignore[index]
                passed, before = places[b] - before - (b - a), places[b]
                memory = self._memory(b)
                made = Rounds(batch.inputs[a:b], labels, b - a, b - a, memory, passed=passed)
                yield made._replace(
                    times=None if batch.times is None else batch.times[a:b],
                    weights=None if batch.weights is None else batch.weights[a:b],
                    delays=self._delays(batch, a, b),
                    keys=None if batch.keys is None else batch.keys[a:b],
                )

    def _delays(self, batch: Batch, start: int, stop: int) -> np.ndarray | None:
        """Return after how many rounds the labels of some rows come, None for at once."""
        if batch.delays is not None:
            return batch.delays[start:stop]
        return None if self.delay is None else np.full(stop - start, self.delay, dtype=np.int64)

    def _lenient(self, piece: Piece) -> Rounds:
        """Return the rows of a piece, with what is the matter with some of them."""
        problems = dict(piece.problems)
        places = [i for i in range(len(piece)) if i not in problems]
        part = piece.take(places) if problems else piece
        try:
            batch = self.bound.batch(part)
        except InputError:
            more = self.bound.problems(part)
            batch = self.bound.batch(part.take([i for i in range(len(part)) if i not in more]))
            problems |= {places[i]: problem for i, problem in more.items()}
        count, absent = len(batch.piece), batch.unlabelled
        made = Rounds(batch.inputs, batch.labels, count, count, None, absent, problems)
        return made._replace(keys=batch.keys)

    def _pieces(self) -> Iterator[Piece | None]:
        """Yield pieces, and None where no row comes for some time."""
        if self.head is not None:
            yield self.head
        yield from self.table.pieces()
        while self.table.paused:
            yield None
            yield from self.table.pieces()

    def _memory(self, rows: int | None = None) -> Memory | None:
        columns = self.bound.encoder.columns
        return None if isinstance(columns, int) else columns.memory(rows)

    def _gathered(self, ended: Ended, memory: Memory | None) -> Rounds:
        documents, labels = ended.documents, ended.grades if self.bound.labelled else None
        rows, times = sum(map(len, documents)), ended.times or None
        return Rounds(documents, labels, len(documents), rows, memory, times=times)


def _new_classes(labels: np.ndarray, absent: np.ndarray | None, known: int) -> set[int]:
    """Return the rows in which classes beyond the first ``known`` come up.

    >>> _new_classes(np.array([0, 2, 1, 2, 3]), None, 2)
    {1, 4}
    """
    codes = labels if absent is None else np.where(absent, -1, labels)
    highest = np.maximum.accumulate(np.r_[known - 1, codes])
    return {*np.flatnonzero(np.diff(highest)).tolist()}
