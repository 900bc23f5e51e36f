"""River in the race, row by row as dictionaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from benchmarks.race.contest import Contestant, Play, one_by_one
from benchmarks.race.streams import Rows


def _play(make: Callable[[int, int], Any], unit: bool = False) -> Play:
    """Return a play of the model made for a number of classes and a seed.

    With ``unit`` rows are multiplied by the root of the number of features, which leaves most of
    them with entries of variance 1, the scale that default steps are meant for.
    """

    def play(rows: Rows, seed: int) -> tuple[Any, float]:
        factor = math.sqrt(rows.inputs.shape[1]) if unit else 1.0
        dicts = [dict(enumerate(row)) for row in (factor * rows.inputs).tolist()]
        model = make(rows.classes, seed)
        return one_by_one(model.predict_one, model.learn_one)(dicts, rows.labels.tolist())

    return play


def _softmax(optimizer: str = "SGD", *step: float) -> Callable[[int, int], Any]:
    def make(classes: int, seed: int) -> Any:
        from river import linear_model, optim

        return linear_model.SoftmaxRegression(getattr(optim, optimizer)(*step))

    return make


def _two_way(name: str, step: float | None = None, **options: Any) -> Callable[[int, int], Any]:
    """Return what makes a binary model, one against the rest where there are more classes."""

    def make(classes: int, seed: int) -> Any:
        from river import linear_model, multiclass, optim

        if step is not None:
            options["optimizer"] = optim.SGD(step)
        model = getattr(linear_model, name)(**options)
        return model if classes == 2 else multiclass.OneVsRestClassifier(model)

    return make


def _retraining(step: float | None, adwin: bool) -> Callable[[int, int], Any]:
    """Return what starts a softmax regression anew at every drift that is detected.

    ADWIN gives no warnings, so a model in the background cannot be trained with it.
    """

    def make(classes: int, seed: int) -> Any:
        from river import drift, linear_model, optim

        optimizer = None if step is None else optim.SGD(step)
        model = linear_model.SoftmaxRegression(optimizer)
        if not adwin:
            return drift.DriftRetrainingClassifier(model)
        return drift.DriftRetrainingClassifier(model, drift.ADWIN(), train_in_background=False)

    return make


def _tree() -> Callable[[int, int], Any]:
    def make(classes: int, seed: int) -> Any:
        from river import tree

        return tree.HoeffdingAdaptiveTreeClassifier(seed=seed)

    return make


def _forest() -> Callable[[int, int], Any]:
    def make(classes: int, seed: int) -> Any:
        from river import forest

        return forest.ARFClassifier(n_models=10, seed=seed)

    return make


def _neighbours(window: int | None = None) -> Callable[[int, int], Any]:
    def make(classes: int, seed: int) -> Any:
        from river import neighbors

        if window is None:
            return neighbors.KNNClassifier(engine=neighbors.SWINN(dist_func=None, seed=seed))
        return neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=window))

    return make


def contestants() -> list[Contestant]:
    """Return all of River's; the first setting of a family is its default."""
    families: dict[str, tuple[str, dict[str, Play]]] = {
        "SoftmaxRegression": (
            "python",
            {"": _play(_softmax())}
            | {f"SGD({step:g})": _play(_softmax("SGD", step)) for step in (0.1, 1.0, 3.0, 10.0)}
            | {
                "AdaGrad(0.1)": _play(_softmax("AdaGrad")),
                "AdaGrad(1)": _play(_softmax("AdaGrad", 1)),
            },
        ),
        "SoftmaxRegression, unit variance": ("python", {"": _play(_softmax(), unit=True)}),
        "LogisticRegression": (
            "python",
            {"": _play(_two_way("LogisticRegression"))}
            | {f"SGD({s:g})": _play(_two_way("LogisticRegression", s)) for s in (3.0, 10.0)},
        ),
        "DriftRetraining": (
            "python",
            {
                "": _play(_retraining(None, adwin=False)),
                "SGD(3)": _play(_retraining(3.0, adwin=False)),
                "SGD(3) ADWIN": _play(_retraining(3.0, adwin=True)),
            },
        ),
        "ALMA": ("python", {"": _play(_two_way("ALMAClassifier"))}),
        "PA": (
            "python",
            {"": _play(_two_way("PAClassifier"))}
            | {"C 10": _play(_two_way("PAClassifier", C=10.0))},
        ),
        "AdaptiveTree": ("slow", {"": _play(_tree())}),
        "ARF 10": ("slow", {"": _play(_forest())}),
        "KNN": ("slow", {"": _play(_neighbours()), "last 100": _play(_neighbours(100))}),
    }
    return [
        Contestant("river", family, setting, play, "river", setting == "", cost)
        for family, (cost, settings) in families.items()
        for setting, play in settings.items()
    ]
