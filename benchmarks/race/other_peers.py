"""Vowpal Wabbit, scikit-learn and two guesses in the race."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.race.contest import Contestant, Play, Played, by_chances, one_by_one
from benchmarks.race.streams import Rows

#: Settings by family, the default first, and what it costs: with all pairs of features or without.
LOGISTIC = "--loss_function logistic"
WABBIT = {
    "VW oaa": (
        "parsed",
        ("", "--power_t 0", "--power_t 0 -l 3", f"{LOGISTIC} -l 10")
        + (f"{LOGISTIC} --power_t 0 -l 10", "--coin"),
    ),
    "VW oaa -q ::": ("pairs", ("", "--power_t 0", f"{LOGISTIC} --power_t 0 -l 10")),
}


def as_text(rows: Rows) -> list[str]:
    """Return rows in Vowpal Wabbit's format; its classes begin at 1, its numbers are float32."""
    return [
        f"{label + 1} | " + " ".join(f"{j}:{v:.9g}" for j, v in enumerate(row) if v)
        for label, row in zip(rows.labels.tolist(), rows.inputs.tolist(), strict=True)
    ]


def _wabbit(options: str) -> Play:
    """Return a play of parsed examples. What learning returns was predicted before it.

    With the logistic loss it is asked for probabilities, which changes nothing that it learns.
    """

    def play(rows: Rows, seed: int) -> Played:
        from vowpalwabbit import PredictionType, Workspace

        sure = LOGISTIC in options
        kind = PredictionType.SCALARS if sure else PredictionType.MULTICLASS
        asked = f"{options} --probabilities" if sure else options
        workspace = Workspace(f"--oaa {rows.classes} --quiet --random_seed {seed} {asked}")
        examples = [workspace.example(line) for line in as_text(rows)]
        made = []
        start = time.perf_counter()
        for example in examples:
            workspace.learn(example)
            made.append(example.get_prediction(kind))
        seconds = time.perf_counter() - start
        for example in examples:
            workspace.finish_example(example)
        workspace.finish()
        return by_chances(np.array(made), seconds) if sure else Played(np.array(made) - 1, seconds)

    return play


def _sklearn(name: str, **options: Any) -> Play:
    def play(rows: Rows, seed: int) -> Played:
        from sklearn import config_context, linear_model

        model = getattr(linear_model, name)(random_state=seed, **options)
        classes, sure = np.arange(rows.classes), options.get("loss") == "log_loss"
        unknown = np.full(rows.classes, 1.0 / rows.classes)

        def predict(x: np.ndarray) -> Any:
            if not hasattr(model, "coef_"):
                return unknown if sure else 0
            return model.predict_proba(x)[0] if sure else model.predict(x)[0]

        def learn(x: np.ndarray, label: int) -> None:
            model.partial_fit(x, [label], classes=classes)

        with config_context(assume_finite=True, skip_parameter_validation=True):
            singles = list(rows.inputs[:, np.newaxis])
            made, seconds = one_by_one(predict, learn, singles, rows.labels)
        return by_chances(np.array(made), seconds) if sure else Played(made, seconds)

    return play


def _last(rows: Rows, seed: int) -> Played:
    start = time.perf_counter()
    made = np.r_[0, rows.labels[:-1]]
    return Played(made, time.perf_counter() - start)


def _majority(rows: Rows, seed: int) -> Played:
    start = time.perf_counter()
    seen = np.cumsum(np.eye(rows.classes)[rows.labels], axis=0)
    made = np.r_[0, seen[:-1].argmax(axis=1)]
    return Played(made, time.perf_counter() - start)


def contestants() -> list[Contestant]:
    """Return them all; the first setting of a family is its default."""
    made = []
    for family, (cost, settings) in WABBIT.items():
        for options in settings:
            play = _wabbit(f"{family.removeprefix('VW oaa')} {options}")
            one = Contestant("vw", family, options, play, "vowpalwabbit", not options, cost)
            made.append(one)
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
    guesses: dict[str, Play] = {
        "last label": _last,
        "majority": _majority,
    }
    for name, guess in guesses.items():
        made.append(Contestant("guesses", name, "", guess, "numpy", True))
    return made
