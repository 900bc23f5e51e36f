"""``python -m benchmarks.bandits``: mistakes when only hits and misses are seen.

Beside ``auto(task, feedback="bandit")``, for which nothing is chosen: epsilon-greedy steps, and
uniform exploration with AdaGrad (Shibukawa et al., 2025), each with its best setting in hindsight
on every stream; and the four explorers of Vowpal Wabbit, if it is there, at their defaults.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import click
import numpy as np
from numba import njit

import driftline as dl
from driftline.readers.arff import read_arff

FIRST_SEED = 200

#: Shares of random predictions; constant steps; and steps over the root of the round.
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
STEPS = (0.03, 0.1, 0.3, 1.0)
DECAYING = (1.0, 3.0)

WABBITS = {
    "epsilon": "--epsilon 0.05",
    "bag": "--bag 5",
    "cover": "--cover 3",
    "squarecb": "--squarecb",
}


@njit
def explore_and_step(X, y, uniforms, classes, share, step, decaying, adagrad, diameter):
    """Play base-2 logistic steps from hits, with a share of uniform predictions; count mistakes.

    With ``adagrad`` the other predictions are drawn by the nearest vertex, and steps are the
    diameter over the root of the sum of squares; else they are those of highest score.
    """
    W, q, mistakes, squares = np.zeros((classes, X.shape[1])), np.zeros(classes), 0, 0.0
    for t in range(len(y)):
        x = X[t]
        theta = W @ x
        top = int(np.argmax(theta))
        q[:] = np.exp(theta - theta[top])
        q /= q.sum()
        random = min(1.0, 2.0 * (1.0 - q[top])) if adagrad else 0.0
        p = share / classes + (1.0 - share) * random * q
        p[top] += (1.0 - share) * (1.0 - random)
        chosen = min(int(np.searchsorted(np.cumsum(p), uniforms[t])), classes - 1)
        if chosen != y[t]:
            mistakes += 1
            continue
        g = q / (np.log(2.0) * p[chosen])
        g[chosen] -= 1.0 / (np.log(2.0) * p[chosen])
        squares += (g @ g) * (x @ x)
        eta = step / np.sqrt(t + 1.0) if decaying else step
        if adagrad:
            eta = diameter / np.sqrt(2.0 * squares + 1e-12)
        for k in range(classes):
            W[k] -= eta * g[k] * x
        norm = np.sqrt((W**2).sum())
        if norm > diameter / 2.0:
            W *= diameter / 2.0 / norm
    return mistakes


def hindsight(X: np.ndarray, y: np.ndarray, classes: int, seed: int) -> dict[str, int]:
    """Return the mistakes of both peers at their best settings."""
    uniforms = np.random.default_rng([seed, 1]).random(len(y))
    given = (X, y, uniforms, classes)
    steps = [*product(STEPS, (False,)), *product(DECAYING, (True,))]
    greedy = [
        explore_and_step(*given, share, step, decaying, False, 20.0)
        for share, (step, decaying) in product(SHARES, steps)
    ]
    uniform = [explore_and_step(*given, share, 1.0, False, True, 20.0) for share in SHARES]
    return {"greedy": min(greedy), "AdaGrad": min(uniform)}


def wabbit(X: np.ndarray, y: np.ndarray, classes: int, seed: int, options: str) -> int:
    """Return the mistakes of Vowpal Wabbit, which draws by the probabilities that it states."""
    from vowpalwabbit import Workspace

    workspace = Workspace(f"--cb_explore {classes} {options} --quiet --random_seed {seed}")
    uniforms, mistakes = np.random.default_rng([seed, 2]).random(len(y)), 0
    for t, row in enumerate(X):
        words = " ".join(f"f{j}:{row[j]:.6g}" for j in np.flatnonzero(row))
        chances = np.array(workspace.predict(f"| {words}"))
        chances /= chances.sum()
        chosen = min(int(np.searchsorted(np.cumsum(chances), uniforms[t])), classes - 1)
        wrong = int(chosen != y[t])
        mistakes += wrong
        workspace.learn(f"{chosen + 1}:{wrong}:{chances[chosen]:.8g} | {words}")
    workspace.finish()
    return mistakes


def electricity(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rounds of Electricity, with rows of norm 1 at most."""
    folder = Path(os.environ["DRIFTLINE_DATA"]) / "electricity"
    values = read_arff(folder / "elecNormNew.arff.gz").values[:rounds]
    return values[:, :-1] / np.sqrt(values.shape[1] - 1), values[:, -1].astype(np.int64)


Case = tuple[str, Callable[[int], tuple[np.ndarray, np.ndarray]], int]


def cases(rounds: int, flips: tuple[int, ...], images: bool) -> Iterator[Case]:
    """Yield names of streams, how to make them of a seed, and numbers of classes."""

    def planted(classes: int, changes: int) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
        def made(seed: int) -> tuple[np.ndarray, np.ndarray]:
            task = dl.tasks.Multiclass(classes)
            stream = dl.streams.Planted(task, rounds, changes, seed=seed)
            return stream.inputs, np.asarray(stream.labels)

        return made

    def digits(changes: int, source: str) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
        def made(seed: int) -> tuple[np.ndarray, np.ndarray]:
            stream = dl.streams.DigitTriples(rounds, changes, seed=seed, source=source)
            return stream.inputs, stream.labels

        return made

    for classes, changes in product((3, 10), flips):
        yield f"planted, K = {classes}, {changes} flips", planted(classes, changes), classes
    source = "mnist" if os.environ.get("DRIFTLINE_DATA") else "digits"
    if images and source == "mnist":
        yield "electricity, its first rounds", lambda _: electricity(rounds), 2
    for changes in flips if images else ():
        yield f"{source} triples, {changes} flips", digits(changes, source), 3


@click.command()
@click.option("--rounds", default=10_000, show_default=True)
@click.option("--flips", default=(0, 10), multiple=True, show_default=True)
@click.option("--seeds", default=5, show_default=True)
@click.option("--vw/--no-vw", default=True, show_default=True, help="Play Vowpal Wabbit, too.")
@click.option("--images/--no-images", default=True, show_default=True, help="Play digits, too.")
def main(rounds: int, flips: tuple[int, ...], seeds: int, vw: bool, images: bool) -> None:
    """Print mistakes, means over seeds with standard deviations, and ratios of ours to peers'."""
    for name, make, classes in cases(rounds, flips, images):
        table: dict[str, list[int]] = {}
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            X, y = make(seed)
            learner = dl.auto(dl.tasks.Multiclass(classes), feedback="bandit", seed=seed)
            row = {"ours": int((learner.run(X, y).prediction != y).sum())}
            row |= hindsight(X, y, classes, seed)
            if vw:
                row |= {f"vw {k}": wabbit(X, y, classes, seed, v) for k, v in WABBITS.items()}
            for key, count in row.items():
                table.setdefault(key, []).append(count)
        means = {key: np.mean(counts) for key, counts in table.items()}
        click.echo(f"{name}, {rounds} rounds, {seeds} seeds")
        for key, counts in table.items():
            ratio = "" if key == "ours" else f"  ours / this {means['ours'] / means[key]:.2f}"
            click.echo(f"  {key:12} {means[key]:9.0f} +- {np.std(counts):5.0f}{ratio}")


if __name__ == "__main__":
    main()
