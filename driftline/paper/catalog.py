"""The experiments by name: their methods and their streams."""

from __future__ import annotations

from dataclasses import replace

from driftline.paper import costs, methods, ranking, sources, structured
from driftline.paper.experiment import Experiment, Maker
from driftline.paper.methods import Method
from driftline.streams import LabelFlips, OCRWords, PlantedSequences, RankedQueries
from driftline.tasks import (
    NDCG,
    LabelRanking,
    Matching,
    Multilabel,
    Ordinal,
    PrecisionAtK,
    RelevanceTask,
    Task,
)

__all__ = ["EXPERIMENTS", "Experiment"]


def _relevance(title: str, task: RelevanceTask, **real: Maker) -> Experiment:
    return Experiment(
        ranking.ranking_methods(15),
        ranking.GROUPS,
        {"planted": sources.relevance(task), **real},
        ("planted",),
        5000,
        3,
        {"planted": title, "ltr": "LightGBM's example"},
        {name: ranking.ranking_methods(27) for name in real},
    )


def _structured(
    title: str, task: Task, made: tuple[Method, ...], rounds: int, **real: Maker
) -> Experiment:
    return Experiment(
        made,
        structured.GROUPS,
        {"planted": sources.planted(task), **real},
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
            "digits": sources.digits("digits"),
            "mnist": sources.digits("mnist"),
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
            emotions=sources.mulan("emotions", "emotions"),
            bibtex=sources.mulan("bibtex", "bibtex"),
            tmc2007=sources.mulan("tmc2007", "tmc2007-500"),
        ),
        groups=structured.TAG_GROUPS,
    ),
    "ordinal": _structured("6 levels", Ordinal(6), structured.sparsemap_methods(), 4000),
    "ranking": _structured(
        "Rankings of 5",
        LabelRanking(5),
        structured.sparsemap_methods(),
        4000,
        vowel=sources.ranking("vowel"),
        pendigits=sources.ranking("pendigits"),
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
    "ndcg": _relevance("NDCG of 5 to 15", NDCG(4), ltr=RankedQueries),
    "precision": _relevance("Precision at 3", PrecisionAtK(3)),
    "cost": Experiment(
        costs.cost_methods(),
        costs.GROUPS,
        {"planted": sources.planted(costs.COSTS)},
        ("planted",),
        3000,
        3,
        {"planted": "Costs of 5 classes"},
    ),
}
