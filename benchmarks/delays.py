"""``python -m benchmarks.delays``: mistakes when labels come late, beside other ways to wait.

On streams with flips: logistic steps with the gradient of the prediction (stale), and one learner
for each round of the delay (BOLD; Joulani et al., 2013), both at five steps. On Electricity, if
``DRIFTLINE_DATA`` is set: learners of River, each told its labels as late as ours. With ``--race``
the same on every other stream of the race, beside the two learners of River that were best on
Electricity.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from numba import njit

import driftline as dl
from driftline.readers.arff import read_arff

FIRST_SEED = 300
STEPS = (0.01, 0.1, 1.0, 3.0, 10.0)


@njit
def waiting(X, y, classes, delay, step, copies):
    """Count mistakes of argmax with logistic steps that are made ``delay`` rounds late.

    With ``copies`` round t is played by learner t modulo delay + 1, which knows all labels of its
    own rounds; else there is one learner, and gradients are those of the predictions.
    """
    rounds, features = X.shape
    count = delay + 1 if copies else 1
    W = np.zeros((count, classes, features))
    kept = np.zeros((delay + 1, classes))
    mistakes = 0
    for t in range(rounds):
        if t >= delay:  # the label of this round has come
            s = t - delay
            for k in range(classes):
                W[s % count, k] -= step * kept[s % (delay + 1), k] * X[s]
        theta = W[t % count] @ X[t]
        mistakes += int(np.argmax(theta)) != y[t]
        q = np.exp(theta - theta.max())
        kept[t % (delay + 1)] = q / q.sum()
        kept[t % (delay + 1), y[t]] -= 1.0
    return mistakes


def old_concept(stream: Any, delay: int) -> int:
    """Return the mistakes of the last concept in the rounds after each flip."""
    labels, wrong = np.asarray(stream.labels), 0
    ends = [*stream.starts[1:], len(labels)]
    for i, start in enumerate(stream.starts[1:]):
        rows = slice(start, min(start + delay, ends[i + 1]))
        scores = stream.inputs[rows] @ stream.comparator.weights[i].T
        wrong += int((scores.argmax(axis=1) != labels[rows]).sum())
    return wrong


def flips(seeds: int, delay: int) -> None:
    """Print mistakes on planted streams of three classes with ten flips."""
    table: dict[str, list[float]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        stream = dl.streams.Planted(dl.tasks.Multiclass(3), 10_000, 10, seed=seed)
        X, y = stream.inputs, np.asarray(stream.labels)
        row: dict[str, float] = {}
        for effort in ("fast", "balanced"):
            traces = [dl.auto(stream.task, effort=effort).run(X, y, delay=d) for d in (0, delay)]
            made = [int((trace.prediction != y).sum()) for trace in traces]
            row[f"{effort}, no delay"], row[f"{effort}, delay"] = made
            row[f"{effort}, allowed"] = 1.5 * made[0] + old_concept(stream, delay)
        for name, copies in (("stale", False), ("BOLD", True)):
            for step in STEPS:
                row[f"{name} {step:g}"] = waiting(X, y, 3, delay, step, copies)
        for key, count in row.items():
            table.setdefault(key, []).append(count)
    click.echo(f"planted, K = 3, 10 flips, 10000 rounds, delay {delay}, {seeds} seeds")
    for key, counts in table.items():
        click.echo(f"  {key:22} {np.mean(counts):8.0f} +- {np.std(counts):5.0f}")


def rivers() -> dict[str, Callable[[], Any]]:
    """Return learners of River by name."""
    from river import ensemble, forest, linear_model, neighbors, optim, preprocessing, tree

    def scaled(model: Any) -> Any:
        return preprocessing.StandardScaler() | model

    return {
        "LogisticRegression": lambda: scaled(linear_model.LogisticRegression()),
        "LogisticRegression SGD(3)": lambda: scaled(
            linear_model.LogisticRegression(optim.SGD(3.0))
        ),
        "HoeffdingAdaptiveTree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        "LeveragingBagging": lambda: ensemble.LeveragingBaggingClassifier(
            tree.HoeffdingTreeClassifier(), n_models=10, seed=0
        ),
        "ARF 10": lambda: forest.ARFClassifier(n_models=10, seed=0),
        "KNN": lambda: scaled(neighbors.KNNClassifier(n_neighbors=5)),
    }


def late_river(model: Any, X: np.ndarray, y: np.ndarray, delay: int) -> int:
    """Return the mistakes of a learner of River that is told each label ``delay`` rounds later."""
    mistakes, queue = 0, deque[tuple[dict[int, float], int]]()
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(enumerate(row))
        mistakes += (model.predict_one(x) or 0) != label
        queue.append((x, label))
        if len(queue) > delay:
            model.learn_one(*queue.popleft())
    return mistakes


def ours(X: np.ndarray, y: np.ndarray, classes: int, delay: int) -> dict[str, int]:
    """Return our mistakes, by effort."""
    made = {}
    for effort in ("fast", "balanced"):
        trace = dl.auto(dl.tasks.Multiclass(classes), effort=effort).run(X, y, delay=delay)
        made[effort] = int((trace.prediction != y).sum())
    return made


def electricity(delays: tuple[int, ...], rows: int | None) -> None:
    """Print mistakes on Electricity."""
    folder = Path(os.environ["DRIFTLINE_DATA"]) / "electricity"
    values = read_arff(folder / "elecNormNew.arff.gz").values[:rows]
    X, y = values[:, :-1], values[:, -1].astype(np.int64)
    for delay in delays:
        click.echo(f"electricity, {len(y)} rounds, delay {delay}")
        for effort, wrong in ours(X, y, 2, delay).items():
            click.echo(f"  driftline {effort:18} {wrong:8d}")
        for name, make in rivers().items():
            click.echo(f"  river {name:22} {late_river(make(), X, y, delay):8d}")


def others(delays: tuple[int, ...], seed: int) -> None:
    """Print mistakes on all streams of the race but Electricity."""
    from benchmarks.race.streams import WIDE, available, rows_of

    peers = {name: rivers()[name] for name in ("LeveragingBagging", "ARF 10")}
    click.echo(
        f"{'stream':28}{'delay':>7}{'fast':>8}{'auto':>8}"
        + "".join(f"{name:>20}" for name in peers)
    )
    for name in available():
        if name == "electricity" or name in WIDE:
            continue
        rows = rows_of(name, seed)
        for delay in delays:
            if 4 * delay > len(rows.labels):
                continue
            made = [*ours(rows.raw, rows.labels, rows.classes, delay).values()]
            made += [late_river(make(), rows.raw, rows.labels, delay) for make in peers.values()]
            words = "".join(f"{n:8d}" for n in made[:2]) + "".join(f"{n:20d}" for n in made[2:])
            click.echo(f"{name:28}{delay:7d}{words}")


@click.command()
@click.option("--seeds", default=5, show_default=True)
@click.option("--delay", default=100, show_default=True, help="Of the streams with flips.")
@click.option("--late", default=(10, 100, 1000), multiple=True, help="Delays on Electricity.")
@click.option("--rows", type=int, help="How many rows of Electricity.  [default: all]")
@click.option("--race", is_flag=True, help="Other streams alone; takes half an hour.")
def main(seeds: int, delay: int, late: tuple[int, ...], rows: int | None, race: bool) -> None:
    """Print both tables, or that of other streams."""
    if race:
        others((100, 1000), FIRST_SEED)
        return
    flips(seeds, delay)
    if os.environ.get("DRIFTLINE_DATA"):
        electricity(late, rows)


if __name__ == "__main__":
    main()
