"""Group rows by query into queries with all their documents."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import numpy as np

from driftline.app.tables import Batch
from driftline.typing import Inputs

__all__ = ["Ended", "Queries"]


class Ended(NamedTuple):
    """Queries that have ended: documents, grades if there are any, and when they began."""

    documents: list[np.ndarray]
    grades: list[np.ndarray]
    times: list[str]


class Queries:
    """Gathers the documents of a query, which may continue in the next piece.

    ``name`` is the column that says which rows belong together, ``ended`` are queries of earlier
    rows, which must not come back.
    """

    def __init__(self, name: str, ended: Iterable[str] = ()):
        self.name = name
        #: The row of the last piece at which the last query began, None if in an earlier piece.
        self.began: int | None = None
        self._current: str | None = None
        self._inputs: list[np.ndarray] = []
        self._grades: list[np.ndarray] = []
        self._times: list[str] = []
        self._seen = dict.fromkeys(ended)

    def add(self, batch: Batch) -> Ended:
        """Return all queries that have ended."""
        inputs: Inputs = batch.inputs
        inputs = inputs.toarray() if hasattr(inputs, "indptr") else inputs
        texts = [text.strip() for text in batch.queries or ()]
        changes = [i for i in range(1, len(texts)) if texts[i] != texts[i - 1]]
        ended = Ended([], [], [])
        self.began = None
        for a, b in zip([0, *changes], [*changes, len(texts)], strict=True):
            if texts[a] != self._current:
                last = self.end()
                ended.documents.extend(last.documents)
                ended.grades.extend(last.grades)
                ended.times.extend(last.times)
                if texts[a] in self._seen:
                    raise batch.piece.error(
                        a,
                        self.name,
                        f"query {texts[a][:40]!r} comes back: expected its rows to stand "
                        "together; sort the file by query",
                    )
                self._current, self.began = texts[a], a
                self._seen[texts[a]] = None
                self._times = [] if batch.times is None else [batch.times[a]]
            self._inputs.append(inputs[a:b])
            if batch.labels is not None:
                self._grades.append(batch.labels[a:b])
        return ended

    @property
    def ended(self) -> int:
        """How many queries have ended: all, or all but the last."""
        return len(self._seen) - bool(self._inputs)

    def names(self, count: int) -> list[str]:
        """Return the names of the first queries."""
        return list(islice(self._seen, count))

    def end(self) -> Ended:
        """Return the last query; empty lists if there is none."""
        documents = [np.concatenate(self._inputs)] if self._inputs else []
        grades = [np.concatenate(self._grades)] if self._grades else []
        times, self._inputs, self._grades, self._times = self._times, [], [], []
        return Ended(documents, grades, times)
