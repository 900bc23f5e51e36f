"""Columns of texts that say nothing: ``python -m benchmarks.blocks`` prints what they cost.

Labels are the sign of ``x0 x1 + 0.3 x2`` of six numbers; beside these stand columns of random
texts. Each table is learned by ``driftline run``'s model; printed are its mistakes, how many
members have played, and the seconds that it took.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from driftline.app.runs import Reading, new_model
from driftline.app.tables import Options, guess, open_table

#: How many different texts each column has.
TABLES: tuple[tuple[int, ...], ...] = ((), (30,), (150, 150))


def write(
    path: Path | None, texts: Sequence[int], rounds: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Write a table, if a path is given; return its rows, with places of texts, and labels."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rounds, 6))
    y = (X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0.0).astype(int)
    codes = [random.integers(0, count, rounds) for count in texts]
    if path is not None:
        names = [*(f"x{j}" for j in range(6)), *(f"t{j}" for j in range(len(texts))), "y"]
        cells = [[f"{cell:.6g}" for cell in column] for column in X.T]
        cells += [[f"text{code}" for code in column] for column in codes]
        cells.append(["yes" if label else "no" for label in y])
        lines = [",".join(line) for line in [names, *zip(*cells, strict=True)]]
        path.write_text("\n".join(lines) + "\n")
    return np.column_stack([X, *codes]), y


def main() -> None:
    """Print a line for every table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--learner", default="auto")
    asked = parser.parse_args()
    print(f"{'columns of texts':<20} {'mistakes':>8} {'members':>8} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for texts in TABLES:
            path = Path(folder) / "table.csv"
            write(path, texts, asked.rounds)
            table = open_table(path)
            head = next(table.pieces())
            encoder, _ = guess(table, head, Options(label=["y"]))
            start, model, lost = time.perf_counter(), new_model(asked.learner, encoder), 0.0
            for rounds in Reading(table, encoder, head):
                lost += model.learn(rounds.inputs, rounds.labels).trace.target_loss.sum()
            lost, members = lost / asked.rounds, len(model.learner.members)
            said = " and ".join(map(str, texts)) or "none"
            seconds = time.perf_counter() - start
            print(f"{said:<20} {lost:>8.1%} {members:>8} {seconds:>8.2f}")


if __name__ == "__main__":
    main()
