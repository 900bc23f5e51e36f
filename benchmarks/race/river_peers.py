"""River in the race, row by row as dictionaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.race.contest import Contestant, Play, Played, one_by_one
from benchmarks.race.streams import Rows


def _play(make: Callable[[int, int], Any], unit: bool = False, raw: bool = False) -> Play:
    """Return a play of the model made for a number of classes and a seed.

    With ``unit`` rows are multiplied by the root of the number of features, which leaves most of
    them with entries of variance 1, the scale that default steps are meant for. With ``raw`` they
    are played as they came.
    """

    def play(rows: Rows, seed: int) -> Played:
        factor = math.sqrt(rows.inputs.shape[1]) if unit else 1.0
        inputs = rows.raw if raw else factor * rows.inputs
        dicts = [dict(enumerate(row)) for row in inputs.tolist()]
        model = make(rows.classes, seed)
        believed, seconds = one_by_one(model.predict_proba_one, model.learn_one, dicts, rows.labels)
        made = [int(max(one, key=one.get)) if one else 0 for one in believed]
        return Played(made, seconds, _table(believed, rows.classes))

    return play


def _table(believed: list[dict[Any, float]], classes: int) -> np.ndarray:
    """Return a row of probabilities each: uniform ones where nothing was known."""
    chances = np.zeros((len(believed), classes))
    for row, one in zip(chances, believed, strict=True):
        for label, chance in one.items():
            row[int(label)] = chance
        total = row.sum()
        row[:] = row / total if total > 0.0 else 1.0 / classes
    return chances


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


def _tree(classes: int, seed: int) -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(seed=seed)


def _forest(classes: int, seed: int) -> Any:
    from river import forest

    return forest.ARFClassifier(n_models=10, seed=seed)


def _patches(classes: int, seed: int) -> Any:
    from river import ensemble

    return ensemble.SRPClassifier(seed=seed)


def _bagging(classes: int, seed: int) -> Any:
    from river import ensemble, tree

    return ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=seed)


def _bayes(classes: int, seed: int) -> Any:
    from river import naive_bayes

    return naive_bayes.GaussianNB()


def _neighbours(window: int | None = None) -> Callable[[int, int], Any]:
    """Return what makes nearest neighbours: River's own search, or an exact one in a window."""

    def make(classes: int, seed: int) -> Any:
        from river import neighbors

        if window is None:
            return neighbors.KNNClassifier(engine=neighbors.SWINN(dist_func=None, seed=seed))
        return neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=window))

    return make


def _linear() -> dict[str, dict[str, Play]]:
    """Return the families of linear models, which play standardised rows."""
    return {
        "SoftmaxRegression": {"": _play(_softmax())}
        | {f"SGD({step:g})": _play(_softmax("SGD", step)) for step in (0.1, 1.0, 3.0, 10.0)}
        | {
            "AdaGrad(0.1)": _play(_softmax("AdaGrad")),
            "AdaGrad(1)": _play(_softmax("AdaGrad", 1)),
        },
        "SoftmaxRegression, unit variance": {"": _play(_softmax(), unit=True)},
        "LogisticRegression": {"": _play(_two_way("LogisticRegression"))}
        | {f"SGD({s:g})": _play(_two_way("LogisticRegression", s)) for s in (3.0, 10.0)},
        "DriftRetraining": {
            "": _play(_retraining(None, adwin=False)),
            "SGD(3)": _play(_retraining(3.0, adwin=False)),
            "SGD(3) ADWIN": _play(_retraining(3.0, adwin=True)),
        },
        "ALMA": {"": _play(_two_way("ALMAClassifier"))},
        "PA": {"": _play(_two_way("PAClassifier"))}
        | {"C 10": _play(_two_way("PAClassifier", C=10.0))},
    }


def contestants() -> list[Contestant]:
    """Return all of River's; the first setting of a family is its default."""
    made = [
        Contestant("river", family, setting, play, "river", setting == "", "python")
        for family, settings in _linear().items()
        for setting, play in settings.items()
    ]
    unscaled: dict[str, tuple[str, Callable[[int, int], Any]]] = {
        "GaussianNB": ("slow", _bayes),
        "AdaptiveTree": ("slow", _tree),
        "ARF 10": ("slowest", _forest),
        "LeveragingBagging": ("slowest", _bagging),
        "SRP 10": ("slowest", _patches),
        "KNN": ("slowest", _neighbours()),
    }
    for family, (cost, make) in unscaled.items():
        play = _play(make, raw=True)
        made.append(Contestant("river", family, "", play, "river", True, cost, raw=True))
    for window, cost in ((100, "slow"), (1000, "slowest")):
        make = _neighbours(window)
        for setting, raw in ((f"last {window}", True), (f"last {window}, standardised", False)):
            play = _play(make, raw=raw)
            made.append(Contestant("river", "KNN", setting, play, "river", False, cost, raw=raw))
    return made
