"""MOA in the race, by way of CapyMOA: needs Java."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.race.contest import Contestant, Play, by_chances, one_by_one
from benchmarks.race.streams import Rows


def _play(name: str, **options: Any) -> Play:
    """Return a play of a classifier on raw rows, made into instances before the clock starts."""

    def play(rows: Rows, seed: int) -> Any:
        from capymoa import classifier
        from capymoa.stream import NumpyStream

        stream = NumpyStream(rows.raw, rows.labels, target_type="categorical")
        schema = stream.get_schema()
        instances = [stream.next_instance() for _ in range(len(rows.labels))]
        model = getattr(classifier, name)(schema, random_seed=seed, **options)

        def learn(instance: Any, label: int) -> None:
            model.train(instance)

        believed, seconds = one_by_one(model.predict_proba, learn, instances, rows.labels)
        places = [int(value) for value in schema.get_label_values()]
        return by_chances(_table(believed, places, rows.classes), seconds)

    return play


def _table(believed: list[Any], places: list[int], classes: int) -> np.ndarray:
    """Return a row of probabilities each: uniform ones where there were no votes."""
    chances = np.zeros((len(believed), classes))
    for row, votes in zip(chances, believed, strict=True):
        if votes is not None:
            row[places[: len(votes)]] = votes
        total = row.sum()
        row[:] = row / total if total > 0.0 else 1.0 / classes
    return chances


def contestants() -> list[Contestant]:
    """Return all of MOA's; the first setting of a family is its default."""
    ten = {"ensemble_size": 10}
    families: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
        "NaiveBayes": ("NaiveBayes", {"": {}}),
        "AdaptiveTree": ("HoeffdingAdaptiveTree", {"": {}}),
        "KNN": ("KNN", {"": {}}),
        "ARF": ("AdaptiveRandomForestClassifier", {"": {}, "10 trees": ten}),
        "LeveragingBagging": ("LeveragingBagging", {"": {}, "10 trees": ten}),
        "SRP": ("StreamingRandomPatches", {"": {}, "10 trees": ten}),
    }
    return [
        Contestant(
            "moa",
            f"MOA {family}",
            setting,
            _play(name, **options),
            "capymoa",
            setting == "",
            "slowest",
            raw=True,
        )
        for family, (name, settings) in families.items()
        for setting, options in settings.items()
    ]
