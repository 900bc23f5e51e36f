"""Streams of River: its generators with a change of concept, and the tables in its wheel.

A change mixes two concepts. Row t comes from the second one with probability
``1 / (1 + exp(-4 (t - POSITION) / width))``, as in River's ``ConceptDriftStream``, which raises
OverflowError at width 1. The two concepts draw from different seeds: no row occurs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

ROUNDS = 10_000
POSITION = 5000
WIDTHS = {"abrupt": 1, "gradual": 1000}

#: The second concept draws from a seed so much larger than that of the first.
APART = 1000

#: Rows of the largest table; the others are played whole.
SHUTTLE_ROWS = 20_000

Made = tuple[np.ndarray, np.ndarray, int]
Concept = Callable[[Any, int], Iterable[tuple[dict[Any, Any], Any]]]


class Change(NamedTuple):
    """Two concepts, each made of River's generators and a seed, and the number of classes.

    ``drifting`` takes the place of a gradual change from one to the other, where the generator
    moves by itself.
    """

    before: Concept
    after: Concept
    classes: int = 2
    drifting: Concept | None = None


def _waveform(synth: Any, seed: int) -> Any:
    return synth.Waveform(seed=seed, has_noise=True)


def _waveform_moved(synth: Any, seed: int) -> Any:
    """Yield rows of a waveform whose columns have changed places."""
    order = np.random.default_rng(seed).permutation(40)
    for x, y in _waveform(synth, seed):
        values = list(x.values())
        yield {i: values[j] for i, j in enumerate(order)}, y


def _clusters(synth: Any, seed: int, speed: float = 0.0) -> Any:
    return synth.RandomRBFDrift(
        seed_model=seed, seed_sample=seed, n_classes=4, change_speed=speed, n_drift_centroids=50
    )


def _led(synth: Any, seed: int, moved: int = 0) -> Any:
    return synth.LEDDrift(
        seed=seed, noise_percentage=0.1, irrelevant_features=True, n_drift_features=moved
    )


CHANGES = {
    "sea": Change(
        lambda synth, seed: synth.SEA(variant=0, noise=0.1, seed=seed),
        lambda synth, seed: synth.SEA(variant=3, noise=0.1, seed=seed),
    ),
    "hyperplane": Change(
        lambda synth, seed: synth.Hyperplane(seed=seed),
        lambda synth, seed: synth.Hyperplane(seed=seed),
        drifting=lambda synth, seed: synth.Hyperplane(
            seed=seed, n_drift_features=10, mag_change=0.01
        ),
    ),
    "led": Change(_led, lambda synth, seed: _led(synth, seed, moved=7), classes=10),
    "sine": Change(
        lambda synth, seed: synth.Sine(classification_function=0, seed=seed),
        lambda synth, seed: synth.Sine(classification_function=1, seed=seed),
    ),
    "rbf": Change(
        _clusters,
        _clusters,
        classes=4,
        drifting=lambda synth, seed: _clusters(synth, seed, speed=0.001),
    ),
    "agrawal": Change(
        lambda synth, seed: synth.Agrawal(classification_function=0, seed=seed),
        lambda synth, seed: synth.Agrawal(classification_function=2, seed=seed),
    ),
    "mixed": Change(
        lambda synth, seed: synth.Mixed(classification_function=0, seed=seed),
        lambda synth, seed: synth.Mixed(classification_function=1, seed=seed),
    ),
    "waveform": Change(_waveform, _waveform_moved, classes=3),
}


def _arrays(rows: Iterable[tuple[dict[Any, Any], Any]], count: int) -> tuple[Any, Any]:
    pairs = list(islice(rows, count))
    inputs = np.array([list(x.values()) for x, _ in pairs], dtype=np.float64)
    return inputs, np.array([y for _, y in pairs])


def mixed(before: Any, after: Any, width: int, seed: int) -> tuple[Any, Any]:
    """Take each row from the first concept or from the second, the next one that it has."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(11,)))
    times = np.arange(1, ROUNDS + 1)
    second = generator.random(ROUNDS) < expit(4.0 * (times - POSITION) / width)
    place = np.where(second, np.cumsum(second), np.cumsum(~second)) - 1
    inputs = np.where(second[:, np.newaxis], after[0][place], before[0][place])
    return inputs, np.where(second, after[1][place], before[1][place]).astype(np.int64)


def changing(name: str, kind: str) -> Callable[[int], Made]:
    """Return what makes a generator's stream with an abrupt or a gradual change."""

    def make(seed: int) -> Made:
        from river.datasets import synth

        change = CHANGES[name]
        if kind == "gradual" and change.drifting is not None:
            inputs, labels = _arrays(change.drifting(synth, seed), ROUNDS)
            return inputs, labels.astype(np.int64), change.classes
        before = _arrays(change.before(synth, seed), ROUNDS)
        after = _arrays(change.after(synth, seed + APART), ROUNDS)
        return *mixed(before, after, WIDTHS[kind], seed), change.classes

    return make


def table(name: str, count: int = 10**9) -> Callable[[int], Made]:
    """Return what reads a table of River's wheel, in the file's order."""

    def make(seed: int) -> Made:
        from river import datasets

        inputs, labels = _arrays(getattr(datasets, name)(), count)
        values, codes = np.unique(labels, return_inverse=True)
        return inputs, codes.astype(np.int64), len(values)

    return make


GENERATORS = {f"{name} {kind}": changing(name, kind) for name in CHANGES for kind in WIDTHS}
TABLES = {
    "bananas": table("Bananas"),
    "phishing": table("Phishing"),
    "segments": table("ImageSegments"),
    "shuttle": table("Shuttle", SHUTTLE_ROWS),
}
