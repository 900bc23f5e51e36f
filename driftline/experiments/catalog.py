"""The experiments by name: who plays, on which streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from driftline.errors import InputError
from driftline.experiments import methods, structured
from driftline.experiments.methods import Method
from driftline.streams import (
    DigitTriples,
    LabelFlips,
    OCRWords,
    Planted,
    PlantedSequences,
    Relabelled,
    Stream,
)
from driftline.streams.readers import read_label_ranking, read_mulan
from driftline.tasks import LabelRanking, Matching, Multilabel, Ordinal, Task

__all__ = ["EXPERIMENTS", "Experiment"]

#: Makes a stream from rounds, flips and a seed.
Maker = Callable[[int, int, int], Stream]


@dataclass(frozen=True)
class Experiment:
    """Methods in groups, and streams by name; ``titles`` are for figures."""

    methods: tuple[Method, ...]
    groups: Mapping[str, str]
    streams: Mapping[str, Maker]
    default_data: tuple[str, ...]
    rounds: int = 10_000
    trials: int = 10
    titles: Mapping[str, str] = field(default_factory=dict)


def _digits(source: Any) -> Maker:
    return lambda rounds, flips, seed: DigitTriples(rounds, flips, seed, source)


def _planted(task: Task) -> Maker:
    return lambda rounds, flips, seed: Planted(task, rounds, flips, seed=seed)


def _data_folder() -> Path:
    base = os.environ.get("DRIFTLINE_DATA")
    if not base:
        raise InputError("no data folder is known: set DRIFTLINE_DATA to it")
    return Path(base)


def _mulan(name: str, file: str) -> Maker:
    def make(rounds: int, flips: int, seed: int) -> Stream:
        folder = _data_folder() / "multilabel" / name
        inputs, labels = read_mulan(folder / f"{file}.arff.gz", folder / f"{file}.xml")
        return Relabelled(Multilabel(labels.shape[1]), inputs, labels, rounds, flips, seed)

    return make


def _ranking(name: str) -> Maker:
    def make(rounds: int, flips: int, seed: int) -> Stream:
        path = _data_folder() / "label_ranking" / f"{name}.txt.gz"
        inputs, ranks, items = read_label_ranking(path)
        return Relabelled(LabelRanking(len(items)), inputs, ranks, rounds, flips, seed)

    return make


def _structured(title: str, task: Task, made: Any, rounds: int, **real: Maker) -> Experiment:
    return Experiment(
        made,
        structured.GROUPS,
        {"planted": _planted(task), **real},
        ("planted",),
        rounds,
        3,
        {"planted": title},
    )


EXPERIMENTS = {
    "classification": Experiment(
        methods.CLASSIFIERS,
        methods.GROUPS,
        {
            "synthetic": lambda rounds, flips, seed: LabelFlips(rounds, flips, seed),
            "digits": _digits("digits"),
            "mnist": _digits("mnist"),
        },
        ("synthetic", "digits"),
        titles={"synthetic": "Synthetic", "digits": "Digits 8x8", "mnist": "MNIST"},
    ),
    "multilabel": replace(
        _structured(
            "10 tags",
            Multilabel(10),
            structured.multilabel_methods(),
            10_000,
            emotions=_mulan("emotions", "emotions"),
            bibtex=_mulan("bibtex", "bibtex"),
            tmc2007=_mulan("tmc2007", "tmc2007-500"),
        ),
        groups=structured.TAG_GROUPS,
    ),
    "ordinal": _structured("6 levels", Ordinal(6), structured.sparsemap_methods(), 4000),
    "ranking": _structured(
        "Rankings of 5",
        LabelRanking(5),
        structured.sparsemap_methods(),
        4000,
        vowel=_ranking("vowel"),
        pendigits=_ranking("pendigits"),
    ),
    "matching": _structured("Matchings of 4", Matching(4), structured.sparsemap_methods(), 1500),
    "sequence": Experiment(
        structured.chain_methods(),
        structured.CHAIN_GROUPS,
        {
            "planted": lambda rounds, flips, seed: PlantedSequences(rounds, flips, seed=seed),
            "ocr": lambda rounds, flips, seed: OCRWords(rounds, flips, seed),
        },
        ("planted",),
        3000,
        3,
        {"planted": "Sequences of 5 tags", "ocr": "OCR words"},
    ),
}
