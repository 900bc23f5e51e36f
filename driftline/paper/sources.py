"""Where the streams of the experiments come from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from driftline.errors import InputError
from driftline.paper.experiment import Maker
from driftline.readers import read_label_ranking, read_mulan
from driftline.streams import DigitTriples, Planted, PlantedRankings, Relabelled, Stream
from driftline.tasks import LabelRanking, Multilabel, RelevanceTask, Task

__all__ = ["digits", "mulan", "planted", "ranking", "relevance"]


def digits(source: Literal["digits", "mnist"]) -> Maker:
    """Return triples of digits."""
    return lambda rounds, flips, seed: DigitTriples(rounds, flips, seed, source)


def planted(task: Task) -> Maker:
    """Return labels from planted weights."""
    return lambda rounds, flips, seed: Planted(task, rounds, flips, seed=seed)


def _data_folder() -> Path:
    base = os.environ.get("DRIFTLINE_DATA")
    if not base:
        raise InputError("no data folder is known: set DRIFTLINE_DATA to it")
    return Path(base)


def mulan(name: str, file: str) -> Maker:
    """Return a set of tagged rows whose tags change their names."""

    def make(rounds: int, flips: int, seed: int) -> Stream:
        folder = _data_folder() / "multilabel" / name
        inputs, labels = read_mulan(folder / f"{file}.arff.gz", folder / f"{file}.xml")
        return Relabelled(Multilabel(labels.shape[1]), inputs, labels, rounds, flips, seed)

    return make


def ranking(name: str) -> Maker:
    """Return a set of rankings whose items change their names."""

    def make(rounds: int, flips: int, seed: int) -> Stream:
        path = _data_folder() / "label_ranking" / f"{name}.txt.gz"
        inputs, ranks, items = read_label_ranking(path)
        return Relabelled(LabelRanking(len(items)), inputs, ranks, rounds, flips, seed)

    return make


def relevance(task: RelevanceTask) -> Maker:
    """Return documents graded by planted weights."""
    return lambda rounds, flips, seed: PlantedRankings(task, rounds, flips, seed=seed)
