"""Settings of one learner over the same rows: shared passes beside one run after the other.

``python -m benchmarks.sweeps`` prints, for one core, the ratio of times in one process, and its
spread: least, median and largest of several repetitions, in each of which all are timed in turn.
Runs in turn include a copy of each learner, a third of a millisecond, as a loop would need it that
plays several streams.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import click
import numpy as np

import driftline as dl
from driftline.sweeps.shared import play_shared

Make = Callable[[float], dl.OGD]


def makers(classes: int, dtype: type) -> dict[str, Make]:
    """Return learners of one setting, the diameter of the ball, by the name of their parts."""
    task = dl.tasks.Multiclass(classes)
    logistic, hinge = dl.losses.Logistic(task), dl.losses.SmoothHinge(task)
    scaled = dl.losses.Scaled(logistic, 2.0)
    argmax = dl.decoders.Argmax(scaled)
    ball = dl.domains.Ball
    return {
        "logistic, gap-optimal": lambda d: dl.OGD(logistic, domain=ball(d), dtype=dtype),
        "logistic, argmax": lambda d: dl.OGD(scaled, argmax, domain=ball(d), dtype=dtype),
        "smooth hinge": lambda d: dl.OGD(hinge, domain=ball(d), dtype=dtype),
    }


def rows(rounds: int, features: int, classes: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs of norm about 1, and labels by a noisy linear rule."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((rounds, features)) / np.sqrt(features)
    scores = X @ generator.standard_normal((features, classes))
    scores += 0.3 * generator.standard_normal(scores.shape)
    return X.astype(dtype), np.argmax(scores, axis=1)


def measure(learners: dict[str, dl.OGD], X: np.ndarray, y: np.ndarray, repeats: int) -> np.ndarray:
    """Return seconds of runs in turn, of a sweep without and with sharing, and of one pass."""
    plain, seconds = list(learners.values()), []

    def loop() -> list[tuple[float, ...]]:
        traces = (learner.copy().run(X, y, seed=0, audit=False) for learner in plain)
        return [tuple(float(c.sum()) for c in (t.target_loss, t.risk, t.loss)) for t in traces]

    def swept(shared: bool) -> list[tuple[float, ...]]:
        table = dl.sweep(learners, {"rows": (X, y)}, n_jobs=1, shared=shared)
        return [(row.target_loss, row.risk, row.surrogate_loss) for row in table]

    def passed() -> list[tuple[float, ...]]:
        return [tuple(totals)[1:] for totals in play_shared(plain, X, y, 0) if totals is not None]

    for _ in range(repeats + 1):
        times, found = [], []
        for play in (loop, lambda: swept(False), lambda: swept(True), passed):
            start = time.perf_counter()
            found.append(play())
            times.append(time.perf_counter() - start)
        assert all(one == found[0] for one in found), "bits differ"
        seconds.append(times)
    return np.array(seconds[1:])  # the first one loads compiled code


def spread(ratios: Iterable[float]) -> str:
    """Return least, median and largest ratio."""
    least, middle, most = np.quantile(list(ratios), [0.0, 0.5, 1.0])
    return f"{middle:5.2f} ({least:.2f} to {most:.2f})"


@click.command()
@click.option("--settings", default=200, show_default=True)
@click.option("--rounds", default=10_000, show_default=True)
@click.option("--features", default=64, show_default=True)
@click.option("--repeats", default=5, show_default=True)
def main(settings: int, rounds: int, features: int, repeats: int) -> None:
    """Print how many times as fast as runs one after the other."""
    click.echo(f"{settings} settings, {rounds:,} rows of {features} features, one core; ")
    click.echo("times as fast as runs in turn: median (least to most); totals have equal bits")
    head = f"{'':10}{'':3}{'':24}{'ns a round':>11}"
    click.echo(f"{head}{'sweep, not shared':>24}{'sweep':>24}{'the pass alone':>24}")
    for dtype in (np.float64, np.float32):
        for classes in (2, 5, 10):
            X, y = rows(rounds, features, classes, dtype)
            for name, make in makers(classes, dtype).items():
                learners = {f"{d:.6g}": make(float(d)) for d in np.geomspace(1, 100, settings)}
                seconds = measure(learners, X, y, repeats)
                base = np.median(seconds[:, 0]) / settings / rounds * 1e9
                told = [spread(seconds[:, 0] / seconds[:, k]) for k in (1, 2, 3)]
                words = "".join(f"{one:>24}" for one in told)
                click.echo(f"{dtype.__name__:10}{classes:<3}{name:24}{base:11.0f}{words}")


if __name__ == "__main__":
    main()
