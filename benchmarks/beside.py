"""Two commits side by side: ``python -m benchmarks.beside COMMIT [CASE ...]`` prints time ratios.

Each commit plays in a process and a work tree of its own, and the two take turns: so noise of the
machine is noise for both. A ratio above 1 says that this tree is faster than the commit: it is
that of the least times, and beside it stand the quartiles of the ratios turn by turn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

HERE = Path(__file__).resolve()


def cases() -> dict[str, Callable[[], Callable[[], object]]]:
    """Return the cases by name: each makes a learner, and returns the call that is timed."""
    import driftline as dl

    random = np.random.default_rng(0)
    X = random.standard_normal((20_000, 20))
    y = (X @ random.standard_normal((20, 3))).argmax(axis=1)
    wide = random.standard_normal((2_000, 200))
    words = sparse.random_array((20_000, 10_000), density=0.005, format="csr", rng=random)
    three, tags = dl.tasks.Multiclass(3), dl.tasks.Multilabel(6)
    loss = dl.losses.Logistic(three)
    keys = random.integers(0, 500, len(y))
    chains = [random.standard_normal((8, 20)) for _ in range(500)]
    spoken = [(x @ random.standard_normal((20, 5))).argmax(axis=1) for x in chains]
    Y = (X[:, :6] > 0).astype(int)
    two, sign = dl.losses.Logistic(dl.tasks.Multiclass(2)), dl.losses.Logistic(dl.tasks.Binary())
    doubled = dl.losses.Scaled(two, 2.0)
    yes, signs = Y[:, 0], 2 * Y[:, 0] - 1

    def ogd(**given: object) -> dl.OGD:
        return dl.OGD(loss, **given)

    def runs(make: Callable[[], object], inputs: object, labels: object) -> Callable[[], object]:
        return lambda: (lambda one: lambda: one.run(inputs, labels))(make())

    def steps(make: Callable[[], object], count: int) -> Callable[[], object]:
        def ready() -> Callable[[], object]:
            one = make()
            one.run(X[:200], y[:200])
            return lambda: [one.step(x, int(k)) for x, k in zip(X[:count], y[:count], strict=True)]

        return ready

    def tells(make: Callable[[], object], count: int) -> Callable[[], object]:
        def ready() -> Callable[[], object]:
            one = make()
            one.run(X[:200], y[:200])
            pairs = list(zip(X[:count], y[:count], strict=True))
            return lambda: [one.tell(one.ask(x), int(k)) for x, k in pairs]

        return ready

    def after(make: Callable[[], object], what: Callable[..., object]) -> Callable[[], object]:
        def ready() -> Callable[[], object]:
            one = make()
            one.run(X[:2000], y[:2000])
            return lambda: what(one)

        return ready

    def auto(effort: str = "balanced") -> object:
        return dl.auto(three, effort=effort)

    crf = dl.losses.Scaled(dl.losses.CRF(dl.tasks.Sequence(5)), 2.0)
    scaled = dl.features.Standardise()
    return {
        "OGD.run": runs(ogd, X, y),
        "OGD.run two classes": runs(lambda: dl.OGD(two), X, yes),
        "OGD.run two, argmax": runs(lambda: dl.OGD(doubled, dl.decoders.Argmax(doubled)), X, yes),
        "OGD.run signs": runs(lambda: dl.OGD(sign), X, signs),
        "OGD.run sparse": runs(ogd, words, y),
        "OGD.run 200 features": runs(ogd, wide, y[:2000]),
        "OGD.run Standardise": runs(lambda: ogd(features=scaled), X, y),
        "OGD.run float32": runs(lambda: ogd(dtype=np.float32), X.astype(np.float32), y),
        "OGD.run sequences": runs(lambda: dl.OGD(crf), chains, spoken),
        "OGD.step": steps(ogd, 1000),
        "OGD.ask, tell": tells(ogd, 1000),
        "auto.run fast": runs(lambda: auto("fast"), X, y),
        "auto.run": runs(auto, X[:4000], y[:4000]),
        "auto.run 200 features": runs(auto, wide, y[:2000]),
        "auto.run 5 features": runs(auto, np.ascontiguousarray(X[:4000, :5]), y[:4000]),
        "auto.run tags": runs(lambda: dl.auto(tags), X[:4000], Y[:4000]),
        "auto.step fast": steps(lambda: auto("fast"), 300),
        "auto.step": steps(auto, 100),
        "auto.ask, tell": tells(auto, 100),
        "auto.predict_rows": after(auto, lambda one: one.predict_rows(X[:2000])),
        "auto.copy": after(auto, lambda one: one.copy()),
        "Keyed(OGD).run": lambda: (lambda one: lambda: one.run(keys, X, y))(dl.Keyed(ogd())),
        "Keyed(auto).run": lambda: (
            lambda one: lambda: one.run(keys[:2000] % 20, X[:2000], y[:2000])
        )(dl.Keyed(auto("fast"))),
        "bandit.run": runs(lambda: dl.auto(three, feedback="bandit"), X, y),
    }


def serve() -> None:
    """Play what the other end of the pipe names, and answer with the seconds."""
    made, ready = cases(), {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in ready:
                ready[name] = made[name]()
                ready[name]()  # compiles
            start = time.perf_counter()
            ready[name]()
            print(time.perf_counter() - start, flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}".splitlines()[0], flush=True)


class Player:
    """A process that plays cases with the library of one work tree."""

    def __init__(self, tree: Path):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--serve"],
            env=os.environ | {"PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str) -> float:
        """Return how long a case took, or NaN if this library cannot play it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            print(f"  {name}: {answer or 'the process has ended'}")
            return float("nan")

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(tree: Path, names: list[str], turns: int) -> None:
    """Print for every case how many times as fast as another tree this one is."""
    players = Player(tree), Player(HERE.parent.parent)
    print(f"{'case':24} {'ratio':>6}   quartiles of {turns} turns")
    for name in names:
        seconds = np.empty((turns, 2))
        for turn in range(turns):
            for k in (turn % 2, 1 - turn % 2):
                seconds[turn, k] = players[k].seconds(name)
        ratio = seconds[:, 0].min() / seconds[:, 1].min()
        low, high = np.quantile(seconds[:, 0] / seconds[:, 1], (0.25, 0.75))
        print(f"{name:24} {ratio:6.2f}   {low:.2f} to {high:.2f}", flush=True)
    for player in players:
        player.close()


def main() -> None:
    """Compare this work tree with a commit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="what this work tree is compared with")
    parser.add_argument("cases", nargs="*", help="names of cases, or parts of them; default: all")
    parser.add_argument("--turns", type=int, default=9)
    asked = parser.parse_args()
    names = [n for n in cases() if not asked.cases or any(part in n for part in asked.cases)]
    git = ["git", "-C", str(HERE.parent)]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "worktree", "add", "-q", "--detach", tree, asked.commit], check=True)
        try:
            compare(tree, names, asked.turns)
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", tree], check=True)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
