"""Real queries whose relevance grades flip."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from driftline.errors import InputError
from driftline.readers import read_svmlight
from driftline.readers.lines import find_file
from driftline.streams.base import Stream, check_count, segment_starts
from driftline.tasks import NDCG

__all__ = ["RankedQueries"]

PARTS = ("rank.train", "rank.test")


class RankedQueries(Stream):
    """The ranking example of LightGBM; at every flip relevance is reversed.

    All queries come in random order, then in another one, until there are enough rounds. A flip
    turns grade g into the highest grade minus g. Every document is divided by the largest norm of
    any, so that norms are at most 1 and keep their proportions.

    Files ``rank.train`` and ``rank.test``, plain or compressed by gzip, and the sizes of their
    queries in ``rank.train.query`` and ``rank.test.query`` are read from ``folder``, by default
    ``ltr_lightgbm`` in the folder that ``DRIFTLINE_DATA`` names.
    """

    def __init__(
        self,
        rounds: int = 10_000,
        flips: int = 10,
        seed: int | None = 0,
        folder: str | Path | None = None,
    ):
        rounds = check_count(rounds, 1, "rounds")
        if folder is None:
            base = os.environ.get("DRIFTLINE_DATA")
            if not base:
                raise InputError("no ranking files are known: set DRIFTLINE_DATA, or give a folder")
            folder = Path(base) / "ltr_lightgbm"
        queries = _read(Path(folder))
        highest = max(int(grades.max()) for _, grades in queries)
        generator = np.random.default_rng(seed)
        passes = -(-rounds // len(queries))
        order = np.concatenate([generator.permutation(len(queries)) for _ in range(passes)])
        self.task = NDCG(max(1, highest))
        self.starts = segment_starts(rounds, flips)
        segment = np.searchsorted(self.starts, np.arange(rounds), side="right") - 1
        self.inputs = [queries[q][0] for q in order[:rounds]]
        self.labels = [
            queries[q][1] if s % 2 == 0 else highest - queries[q][1]
            for q, s in zip(order[:rounds], segment, strict=True)
        ]


def _read(folder: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return documents and grades of every query."""
    parts = []
    for name in PARTS:
        path, sizes = find_file(folder, name), find_file(folder, f"{name}.query")
        part = read_svmlight(path, sizes)
        if part.grades.dtype.kind != "i" or part.grades.min() < 0:
            raise InputError(f"grades in {path} must be whole numbers from 0 on")
        parts.append(part)
    width = max(part.inputs.shape[1] for part in parts)
    queries: list[tuple[np.ndarray, np.ndarray]] = []
    for inputs, grades, starts in parts:
        dense = np.zeros((len(grades), width))
        dense[:, : inputs.shape[1]] = inputs.toarray()
        queries += zip(np.split(dense, starts[1:-1]), np.split(grades, starts[1:-1]), strict=True)
    largest = max(float(np.linalg.norm(documents, axis=1).max()) for documents, _ in queries)
    return [(documents / largest, grades) for documents, grades in queries]
