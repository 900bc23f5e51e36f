"""Tag sequences with hashed words: mistakes in one pass and tokens a second, beside others.

``python -m benchmarks.sequences [tokens]`` plays a chunking-like task of our own: a Markov chain of
23 tags, words of a Zipf vocabulary that tell their tag nine times in ten, and features as chunkers
have them (the word and two to either side, prefixes, suffixes, pairs), hashed to 2^17 columns.
Learners of streams predict every sequence before they learn from it. CRFsuite learns from a file of
sequences: it is trained in one pass over nine tenths, and all are compared on the last tenth. With
``DRIFTLINE_DATA`` set, handwritten words follow.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

import driftline as dl

TAGS, COLUMNS, VOCABULARY = 23, 1 << 17, 20_000


class Data(NamedTuple):
    """All positions, where sequences start, and their tags."""

    positions: csr_array
    starts: np.ndarray
    labels: list[np.ndarray]
    tags: int

    @property
    def tokens(self) -> int:
        """How many positions there are."""
        return int(self.starts[-1])

    def errors(self, predictions: np.ndarray) -> tuple[float, float]:
        """Return the share of wrong tags, and that in the last tenth of the sequences."""
        wrong = np.array(
            [
                np.count_nonzero(row[: len(tags)] != tags)
                for row, tags in zip(predictions, self.labels, strict=True)
            ]
        )
        late = self.first_late
        end = self.tokens - int(self.starts[late])
        return float(wrong.sum() / self.tokens), float(wrong[late:].sum() / end)

    @property
    def first_late(self) -> int:
        """The first sequence of the last tenth."""
        return len(self.labels) * 9 // 10


def mixed(values: np.ndarray, kind: int) -> np.ndarray:
    """Return columns for the values of one kind of feature (SplitMix64)."""
    with np.errstate(over="ignore"):
        bits = (values.astype(np.uint64) + np.uint64(kind << 48)) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) % np.uint64(COLUMNS)).astype(np.int32)


def chunks(tokens: int = 200_000, seed: int = 0) -> Data:
    """Return the generated task."""
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.lognormal(3.0, 0.5, tokens // 10), 2, 80).astype(np.int64)
    starts = np.r_[0, np.cumsum(sizes)]
    starts = starts[: int(np.searchsorted(starts, tokens)) + 1]
    count = int(starts[-1])
    moves = np.cumsum(rng.dirichlet(np.full(TAGS, 0.2), TAGS), axis=1)
    tags, uniforms = rng.integers(0, TAGS, count), rng.random(count)
    first = np.zeros(count, dtype=bool)
    first[starts[:-1]] = True
    for i in np.flatnonzero(~first):
        tags[i] = min(TAGS - 1, int(np.searchsorted(moves[tags[i - 1]], uniforms[i])))
    main = rng.integers(0, TAGS, VOCABULARY)  # the usual tag of every word
    other = rng.integers(0, TAGS, VOCABULARY)
    often = 1.0 / np.arange(1, VOCABULARY + 1) ** 1.05
    words = np.empty(count, dtype=np.int64)
    for tag in range(TAGS):
        chances = often * (0.9 * (main == tag) + 0.1 * (other == tag))
        places = np.flatnonzero(tags == tag)
        words[places] = rng.choice(VOCABULARY, places.size, p=chances / chances.sum())
    noise = rng.random(VOCABULARY) < 0.3
    own = main * 30 + np.arange(VOCABULARY) % 30
    suffix = np.where(noise, rng.integers(0, 690, VOCABULARY), own)
    prefix = rng.integers(0, 900, VOCABULARY)
    inside, places = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), np.arange(count)

    def near(offset: int) -> np.ndarray:
        """Return the words at a distance, 0 outside of the sequence."""
        there = places + offset
        good = (there >= starts[inside]) & (there < starts[inside + 1])
        return np.where(good, words[np.clip(there, 0, count - 1)] + 1, 0)

    made = [np.zeros(count, dtype=np.int64)]
    for offset in (-2, -1, 0, 1, 2):
        made.append(near(offset))
        if abs(offset) <= 1:
            made += [np.r_[0, table + 1][near(offset)] for table in (suffix, prefix)]
    made += [near(-1) * (VOCABULARY + 1) + near(0), near(0) * (VOCABULARY + 1) + near(1)]
    columns = np.stack([mixed(values, kind) for kind, values in enumerate(made)], axis=1)
    ends = np.arange(0, columns.size + 1, columns.shape[1], dtype=np.int32)
    values = np.full(columns.size, columns.shape[1] ** -0.5)
    positions = csr_array((values, columns.ravel(), ends), shape=(count, COLUMNS))
    positions.sum_duplicates()
    return Data(positions, starts, np.split(tags, starts[1:-1]), TAGS)


def letters() -> Data:
    """Return handwritten words, in a random order; pixels as sparse rows."""
    stream = dl.streams.OCRWords()
    starts = np.cumsum([0, *map(len, stream.inputs)])
    return Data(csr_array(np.concatenate(stream.inputs)), starts, stream.labels, 26)


# -- references: as a user would write them, compiled


@njit(cache=False)
def score(values, columns, rows, a, b, W, scores):
    """Write the scores of the positions of one sequence."""
    for i in range(a, b):
        for k in range(W.shape[1]):
            scores[i - a, k] = 0.0
        for e in range(rows[i], rows[i + 1]):
            for k in range(W.shape[1]):
                scores[i - a, k] += values[e] * W[columns[e], k]


@njit(cache=False)
def viterbi(scores, T, n, best, came, path):
    """Write the best path."""
    tags = T.shape[0]
    best[0] = scores[0]
    for t in range(1, n):
        for k in range(tags):
            top = 0
            for i in range(1, tags):
                if best[t - 1, i] + T[i, k] > best[t - 1, top] + T[top, k]:
                    top = i
            came[t, k] = top
            best[t, k] = best[t - 1, top] + T[top, k] + scores[t, k]
    path[n - 1] = np.argmax(best[n - 1])
    for t in range(n - 1, 0, -1):
        path[t - 1] = came[t, path[t]]


@njit(cache=False)
def perceptron(values, columns, rows, starts, labels, height, tags, out):
    """Play an averaged structured perceptron; it predicts by the averaged weights."""
    W, T = np.zeros((height, tags)), np.zeros((tags, tags))
    U, S = np.zeros((height, tags)), np.zeros((tags, tags))  # steps times the rounds before them
    longest = out.shape[1]
    scores, late = np.zeros((longest, tags)), np.zeros((longest, tags))
    best, came = np.zeros((longest, tags)), np.zeros((longest, tags), dtype=np.int64)
    path = np.zeros(longest, dtype=np.int64)
    for t in range(starts.size - 1):
        a, b = starts[t], starts[t + 1]
        n, age = b - a, t + 1.0
        score(values, columns, rows, a, b, W, scores)
        score(values, columns, rows, a, b, U, late)
        for i in range(n):
            for k in range(tags):
                late[i, k] = scores[i, k] - late[i, k] / age
        viterbi(late, T - S / age, n, best, came, path)
        out[t, :n] = path[:n]
        viterbi(scores, T, n, best, came, path)
        for i in range(n):
            y, p = labels[a + i], path[i]
            if y != p:
                for e in range(rows[a + i], rows[a + i + 1]):
                    W[columns[e], y] += values[e]
                    W[columns[e], p] -= values[e]
                    U[columns[e], y] += age * values[e]
                    U[columns[e], p] -= age * values[e]
            if i > 0 and (y != p or labels[a + i - 1] != path[i - 1]):
                T[labels[a + i - 1], y] += 1.0
                T[path[i - 1], p] -= 1.0
                S[labels[a + i - 1], y] += age
                S[path[i - 1], p] -= age


@njit(cache=False)
def descent(values, columns, rows, starts, labels, height, tags, first_eta, out):
    """Play plain stochastic gradient descent on the CRF loss, with steps that decay as 1/sqrt."""
    W, T = np.zeros((height, tags)), np.zeros((tags, tags))
    longest = out.shape[1]
    scores, powers = np.zeros((longest, tags)), np.zeros((longest, tags))
    ahead, behind = np.zeros((longest, tags)), np.zeros((longest, tags))
    best, came = np.zeros((longest, tags)), np.zeros((longest, tags), dtype=np.int64)
    path, sums = np.zeros(longest, dtype=np.int64), np.zeros(longest)
    for t in range(starts.size - 1):
        a, b = starts[t], starts[t + 1]
        n, eta = b - a, first_eta / np.sqrt(1.0 + t / 100.0)
        score(values, columns, rows, a, b, W, scores)
        viterbi(scores, T, n, best, came, path)
        out[t, :n] = path[:n]
        E = np.exp(T)
        for i in range(n):
            powers[i] = np.exp(scores[i] - scores[i].max())
            ahead[i] = powers[i] * (ahead[i - 1] @ E) if i > 0 else powers[i]
            sums[i] = ahead[i].sum()
            ahead[i] /= sums[i]
        behind[n - 1] = 1.0
        for i in range(n - 2, -1, -1):
            behind[i] = E @ (powers[i + 1] * behind[i + 1]) / sums[i + 1]
        for i in range(n):
            slope = ahead[i] * behind[i]
            slope[labels[a + i]] -= 1.0
            for e in range(rows[a + i], rows[a + i + 1]):
                for k in range(tags):
                    W[columns[e], k] -= eta * values[e] * slope[k]
            if i > 0:
                later = powers[i] * behind[i] / sums[i]
                for j in range(tags):
                    for k in range(tags):
                        T[j, k] -= eta * ahead[i - 1, j] * E[j, k] * later[k]
                T[labels[a + i - 1], labels[a + i]] += eta


# -- contenders: predictions of every sequence, and how long that took


class Played(NamedTuple):
    """Shares of wrong tags over all and over the last tenth, and seconds for one pass."""

    errors: float | None
    late: float
    seconds: float


def ours(data: Data, make: Callable[[], Any]) -> Played:
    """Play one of our learners."""
    few = data.starts[:20]
    make().run((data.positions[: few[-1]], few), data.labels[:19])  # compiled here
    learner, start = make(), time.perf_counter()
    trace = learner.run((data.positions, data.starts), data.labels)
    seconds = time.perf_counter() - start
    return Played(*data.errors(trace.prediction), seconds)


def reference(data: Data, play: Callable[..., None], *options: float) -> Played:
    """Play a reference."""
    X, labels = data.positions, np.concatenate(data.labels)
    out = np.full((len(data.labels), int(np.diff(data.starts).max())), -1)
    given = (X.data, X.indices, X.indptr)
    size = (labels, X.shape[1], data.tags)
    play(*given, data.starts[:3], *size, *options, out[:2])
    start = time.perf_counter()
    play(*given, data.starts, *size, *options, out)
    seconds = time.perf_counter() - start
    return Played(*data.errors(out), seconds)


def crfsuite(data: Data, algorithm: str) -> Played | None:
    """Train CRFsuite; a pass is what one more iteration takes."""
    try:
        import pycrfsuite
    except ImportError:
        return None
    X, late, made = data.positions, data.first_late, []
    for a, b in itertools.pairwise(data.starts.tolist()):
        rows = [slice(X.indptr[i], X.indptr[i + 1]) for i in range(a, b)]
        items = [dict(zip(map(str, X.indices[r]), X.data[r].tolist(), strict=True)) for r in rows]
        made.append(pycrfsuite.ItemSequence(items))
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    for items, tags in zip(made[:late], data.labels[:late], strict=True):
        trainer.append(items, [str(tag) for tag in tags])
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        for passes in (4, 1):
            trainer.set_params({"max_iterations": passes})
            start = time.perf_counter()
            trainer.train(f"{folder}/model")
            times[passes] = time.perf_counter() - start
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        pairs = zip(map(tagger.tag, made[late:]), data.labels[late:], strict=True)
        wrong = [tag != str(y) for found, own in pairs for tag, y in zip(found, own, strict=True)]
        tagger.close()

    share = data.starts[late] / data.tokens
    return Played(None, float(np.mean(wrong)), (times[4] - times[1]) / (3 * share))


def wabbit(data: Data) -> Played | None:
    """Play Vowpal Wabbit, a class for every token, from parsed examples."""
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        return None
    from benchmarks.wabbit import lines_of

    labels = np.concatenate(data.labels)
    workspace = Workspace(f"--oaa {data.tags} --quiet -b 22")
    rounds = [workspace.example(line) for line in lines_of(data.positions, labels)]
    made, start = np.empty(len(labels), dtype=np.int64), time.perf_counter()
    for i, one in enumerate(rounds):
        made[i] = workspace.predict(one) - 1
        workspace.learn(one)
    seconds = time.perf_counter() - start
    wrong = made != labels
    return Played(float(wrong.mean()), float(wrong[data.starts[data.first_late] :].mean()), seconds)


def contenders(data: Data) -> Iterator[tuple[str, Played | None]]:
    """Yield names and results."""
    task = dl.tasks.Sequence(data.tags)
    loss = dl.losses.Scaled(dl.losses.CRF(task), 2.0)

    def single(rate: dl.rates.Rate, diameter: float, features: Any = None) -> dl.OGD:
        ball = dl.domains.Ball(diameter)
        return dl.OGD(loss, dl.decoders.Argmax(loss), rate, ball, features=features)

    slow, fast = dl.rates.Decaying(5.0, power=0.5), dl.rates.Decaying(5.0)
    yield "OGD, CRF, steps 1/sqrt(t)", ours(data, lambda: single(slow, 2000.0))
    yield "OGD, CRF, steps 1/t", ours(data, lambda: single(fast, 200.0))
    scaled = dl.features.Standardise(constant=False)
    counted = dl.features.Chain(scaled, dl.features.InverseCounts(16.0))
    small = dl.rates.Constant(0.02)
    yield "OGD, CRF, inverse counts", ours(data, lambda: single(small, 1000.0, counted))
    yield "auto", ours(data, lambda: dl.auto(task))
    yield "averaged perceptron", reference(data, perceptron)
    for eta in (0.5, 2.0, 4.0):
        yield f"plain SGD, CRF, step {eta}", reference(data, descent, eta)
    yield "CRFsuite ap", crfsuite(data, "ap")
    yield "CRFsuite arow", crfsuite(data, "arow")
    yield "Vowpal Wabbit, by token", wabbit(data)


def main() -> None:
    """Print a table for each task."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    tasks = {f"chunks, {tokens:,} tokens": chunks(tokens)}
    if os.environ.get("DRIFTLINE_DATA"):
        tasks["handwritten words"] = letters()
    for name, data in tasks.items():
        table = Table(title=name)
        for column in ("learner", "wrong tags", "in the last tenth", "tokens a second"):
            table.add_column(column, justify="left" if column == "learner" else "right")
        for who, played in contenders(data):
            if played is None:
                continue
            errors = "" if played.errors is None else f"{played.errors:.2%}"
            speed = f"{data.tokens / played.seconds:,.0f}"
            table.add_row(who, errors, f"{played.late:.2%}", speed)
        Console(width=100).print(table)


if __name__ == "__main__":
    main()
