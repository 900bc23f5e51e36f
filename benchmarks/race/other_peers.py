"""Vowpal Wabbit, scikit-learn and two guesses in the race."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.race.contest import Contestant, Play, one_by_one
from benchmarks.race.streams import Rows

WABBIT = (
    "",
    "--power_t 0",
    "--power_t 0 -l 3",
    "--loss_function logistic -l 10",
    "--loss_function logistic --power_t 0 -l 10",
    "--coin",
)


def as_text(rows: Rows) -> list[str]:
    """Return rows in Vowpal Wabbit's format; its classes begin at 1, its numbers are float32."""
    return [
        f"{label + 1} | " + " ".join(f"{j}:{v:.9g}" for j, v in enumerate(row) if v)
        for label, row in zip(rows.labels.tolist(), rows.inputs.tolist(), strict=True)
    ]


def _wabbit(options: str) -> Play:
    """Return a play of parsed examples. What learning returns was predicted before it."""

    def play(rows: Rows, seed: int) -> tuple[Any, float]:
        from vowpalwabbit import PredictionType, Workspace

        workspace = Workspace(f"--oaa {rows.classes} --quiet --random_seed {seed} {options}")
        examples = [workspace.example(line) for line in as_text(rows)]
        made = []
        start = time.perf_counter()
        for example in examples:
            workspace.learn(example)
            made.append(example.get_prediction(PredictionType.MULTICLASS) - 1)
        seconds = time.perf_counter() - start
        for example in examples:
            workspace.finish_example(example)
        workspace.finish()
        return made, seconds

    return play


def _sklearn(name: str, **options: Any) -> Play:
    def play(rows: Rows, seed: int) -> tuple[Any, float]:
        from sklearn import config_context, linear_model

        model = getattr(linear_model, name)(random_state=seed, **options)
        classes = np.arange(rows.classes)

        def predict(x: np.ndarray) -> int:
            return model.predict(x)[0] if hasattr(model, "coef_") else 0

        def learn(x: np.ndarray, label: int) -> None:
            model.partial_fit(x, [label], classes=classes)

        with config_context(assume_finite=True, skip_parameter_validation=True):
            singles = list(rows.inputs[:, np.newaxis])
            return one_by_one(predict, learn)(singles, rows.labels.tolist())

    return play


def _last(rows: Rows, seed: int) -> tuple[Any, float]:
    start = time.perf_counter()
    made = np.r_[0, rows.labels[:-1]]
    return made, time.perf_counter() - start


def _majority(rows: Rows, seed: int) -> tuple[Any, float]:
    start = time.perf_counter()
    seen = np.cumsum(np.eye(rows.classes)[rows.labels], axis=0)
    made = np.r_[0, seen[:-1].argmax(axis=1)]
    return made, time.perf_counter() - start


def contestants() -> list[Contestant]:
    """Return them all; the first setting of a family is its default."""
    made = [
        Contestant("vw", "VW oaa", options, _wabbit(options), "vowpalwabbit", not options, "parsed")
        for options in WABBIT
    ]
    passive = {"loss": "hinge", "penalty": None, "learning_rate": "pa1"}
    constant = {"loss": "log_loss", "learning_rate": "constant", "alpha": 0.0}
    learners: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
        "SGDClassifier": {
            "": ("SGDClassifier", {"loss": "log_loss"}),
            "constant 1": ("SGDClassifier", constant | {"eta0": 1.0}),
            "constant 10": ("SGDClassifier", constant | {"eta0": 10.0}),
        },
        "Perceptron": {"": ("Perceptron", {})},
        "PassiveAggressive": {"": ("SGDClassifier", passive | {"eta0": 1.0})},
    }
    for family, settings in learners.items():
        for setting, (name, options) in settings.items():
            play = _sklearn(name, **options)
            package, default = "scikit-learn", setting == ""
            made.append(Contestant("sklearn", family, setting, play, package, default, "slowest"))
    guesses: dict[str, Callable[[Rows, int], tuple[Any, float]]] = {
        "last label": _last,
        "majority": _majority,
    }
    for name, guess in guesses.items():
        made.append(Contestant("guesses", name, "", guess, "numpy", True))
    return made
