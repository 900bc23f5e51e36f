"""A learner for every key: mistakes and rows a second, beside what a user would pick instead.

``python -m benchmarks.keyed`` plays a stream of 100,000 keys, each with weights of its own that are
partly those of all, and change at a time of its own; rows come in random order, and some keys have
many more than others. River and Vowpal Wabbit come with the extra ``race``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse

import driftline as dl


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", type=int, default=200_000, help="rows that slow peers play")
    parser.add_argument("--committees", type=int, default=200_000, help="rows of committees")
    given = parser.parse_args()
    keys, X, y = stream_of(given.keys, given.rows, given.features, given.seed)
    counts = np.bincount(keys)
    counts = counts[counts > 0]
    print(
        f"{given.rows:,} rows of {len(counts):,} keys, {np.median(counts):.0f} in the median and "
        f"{counts.max():,} at most; {given.features} features, seed {given.seed}"
    )
    print(f"{'what':46} {'rows':>9} {'mistakes':>9} {'of the first':>12} {'rows a second':>14}")
    some, few = given.peers, given.committees
    _tell("one learner for all", one_for_all, keys, X, y, some)
    _tell("Keyed(OGD)", lambda *a: keyed(*a), keys, X, y, some)
    _tell("Keyed(OGD), keys are texts", lambda k, *a: keyed(texts(k), *a), keys, X, y, some)
    _tell("one OGD, features crossed with keys", crossed, keys, X, y, some)
    _tell("Keyed(OGD), start='shared'", shared, keys, X, y, some)
    _tell("Keyed(auto(task, 'fast'))", committees, keys[:few], X[:few], y[:few], some)
    play = partial(committees, start="shared")
    _tell("Keyed(auto(task, 'fast')), start='shared'", play, keys[:few], X[:few], y[:few], some)
    part = keys[:some], X[:some], y[:some]
    _tell("dictionary of OGD", dictionary, *part, some)
    _tell("River: dictionary of logistic regressions", river, *part, some)
    _tell("Vowpal Wabbit: features, -q with the key", wabbit, *part, some)


def stream_of(
    count: int, rows: int, features: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return keys, inputs and labels: weights are half of all keys, half of one, and change."""
    rng = np.random.default_rng(seed)
    often = rng.lognormal(sigma=1.5, size=count)
    keys = rng.choice(count, rows, p=often / often.sum())
    common, own, later = (rng.normal(size=(n, features)) for n in (1, count, count))
    change = rng.uniform(0.0, 1.5, count) * rows
    X = rng.normal(size=(rows, features)) / np.sqrt(features)
    y = np.empty(rows, dtype=np.int64)
    for start in range(0, rows, 100_000):
        part = slice(start, start + 100_000)
        places = np.arange(start, min(start + 100_000, rows))
        mine = np.where((places > change[keys[part]])[:, None], later[keys[part]], own[keys[part]])
        y[part] = ((common + mine) * X[part]).sum(axis=1) > 0.0
    noisy = rng.random(rows) < 0.05
    y[noisy] = 1 - y[noisy]
    return keys, X, y


def _tell(
    name: str,
    play: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]],
    keys: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
    first: int,
) -> None:
    wrong, seconds = play(keys, X, y)
    print(
        f"{name:46} {len(y):9,} {wrong.mean():9.4f} {wrong[:first].mean():12.4f} "
        f"{len(y) / seconds:14,.0f}",
        flush=True,
    )


def learner() -> dl.OGD:
    """Return a learner that predicts the label of highest score, as the others do."""
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(2)), 2.0)
    return dl.OGD(loss, dl.decoders.Argmax(loss))


def crossed(keys: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Play one learner, whose features are those of all keys and those of each.

    Its ball has room for weights of the usual size for every key.
    """
    usual, (rows, features) = learner(), X.shape
    room = dl.domains.Ball(20.0 * np.sqrt(1 + int(keys.max())))
    made = dl.OGD(usual.loss, usual.decoder, domain=room)
    began = time.perf_counter()
    own = features * (1 + keys[:, np.newaxis]) + np.arange(features)
    columns = np.concatenate([np.tile(np.arange(features), (rows, 1)), own], axis=1)
    values, starts = np.concatenate([X, X], axis=1), np.arange(rows + 1) * 2 * features
    wide = features * (2 + int(keys.max()))
    given = sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=(rows, wide))
    trace = made.run(given, y, audit=False)
    return trace.target_loss, time.perf_counter() - began


def texts(keys: np.ndarray) -> list[str]:
    return [f"customer {key}" for key in keys]


def one_for_all(keys: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    made = learner()
    made.copy().run(X[:100], y[:100])
    began = time.perf_counter()
    trace = made.run(X, y)
    return trace.target_loss, time.perf_counter() - began


def keyed(
    keys: np.ndarray | list[str], X: np.ndarray, y: np.ndarray, piece: int = 50_000
) -> tuple[np.ndarray, float]:
    return _fleet(dl.Keyed(learner()), keys, X, y, piece)


def shared(keys: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    return _fleet(dl.Keyed(learner(), start="shared"), keys, X, y, 50_000)


def committees(
    keys: np.ndarray, X: np.ndarray, y: np.ndarray, start: str = "zero"
) -> tuple[np.ndarray, float]:
    committee = dl.auto(dl.tasks.Multiclass(2), effort="fast")
    return _fleet(dl.Keyed(committee, start=start), keys, X, y, 50_000)


def _fleet(
    fleet: dl.Keyed, keys: np.ndarray | list[str], X: np.ndarray, y: np.ndarray, piece: int
) -> tuple[np.ndarray, float]:
    """Play rows in pieces; a first one is for the compiler."""
    dl.Keyed(fleet.learner("any")).run(keys[:100], X[:100], y[:100])
    wrong, began = [], time.perf_counter()
    for start in range(0, len(y), piece):
        part = slice(start, start + piece)
        wrong.append(fleet.run(keys[part], X[part], y[part]).target_loss)
    return np.concatenate(wrong), time.perf_counter() - began


def dictionary(keys: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Play learners in a dictionary; each is a copy of one, with a seed of its key."""
    fleet, learners, wrong = dl.Keyed(learner()), dict[int, dl.OGD](), np.empty(len(y))
    began = time.perf_counter()
    for t, key in enumerate(keys.tolist()):
        if key not in learners:
            learners[key] = learner()
            learners[key]._reseed(fleet.seed_of(key))
        wrong[t] = learners[key].step(X[t], y[t]).target_loss
    return wrong, time.perf_counter() - began


def river(keys: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    from river import compose, linear_model, preprocessing

    models, wrong = {}, np.empty(len(y))
    names = [f"x{j}" for j in range(X.shape[1])]
    began = time.perf_counter()
    for t, (key, x, label) in enumerate(zip(keys.tolist(), X.tolist(), y.tolist(), strict=True)):
        model = models.get(key)
        if model is None:
            parts = preprocessing.StandardScaler(), linear_model.LogisticRegression()
            model = models[key] = compose.Pipeline(*parts)
        row = dict(zip(names, x, strict=True))
        wrong[t] = bool(model.predict_one(row)) != bool(label)
        model.learn_one(row, bool(label))
    return wrong, time.perf_counter() - began


def wabbit(keys: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    from vowpalwabbit import Workspace

    bits = max(18, int(np.ceil(np.log2(len(np.unique(keys)) * X.shape[1]))) + 1)
    machine = Workspace(f"--loss_function logistic -q kf --noconstant -b {bits} --quiet")
    wrong, lines = np.empty(len(y)), []
    for key, x, label in zip(keys.tolist(), X.tolist(), y.tolist(), strict=True):
        cells = " ".join(f"{j}:{value:.6g}" for j, value in enumerate(x))
        lines.append(f"{2 * label - 1} |k {key} |f {cells}")
    began = time.perf_counter()
    for t, line in enumerate(lines):
        example = machine.example(line)
        wrong[t] = (machine.predict(example) > 0.0) != (y[t] > 0)
        machine.learn(example)
        machine.finish_example(example)
    return wrong, time.perf_counter() - began


if __name__ == "__main__":
    main()
