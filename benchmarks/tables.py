"""Learning from a table beside reading it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from driftline.app.runs import Reading, Run, new_model
from driftline.app.tables import Options, guess, open_table

ROWS, COLUMNS = 200_000, 20


def own_tables():
    """Run the default committee over a CSV file, piece by piece."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with path.open("w") as file:
            file.write(",".join([f"x{j}" for j in range(COLUMNS)] + ["label"]) + "\n")
            for _ in range(ROWS // 1000):
                rows = random.standard_normal((1000, COLUMNS))
                for x in rows.tolist():
                    line = ",".join(f"{value:.6f}" for value in x)
                    file.write(f"{line},{'up' if x[0] + x[1] > 0 else 'down'}\n")
        best = min((_run(path) for _ in range(3)), key=sum)
    read, learned = best
    what = f"learning by fast / reading, CSV of {COLUMNS} columns"
    yield "table", what, learned / read, "<= 0.5", ROWS / (read + learned)


def _run(path: Path) -> tuple[float, float]:
    """Return the seconds of reading and of learning."""
    table = open_table(path)
    head = next(table.pieces())
    encoder, _ = guess(table, head, Options())
    run, source = Run(new_model("fast", encoder)), Reading(table, encoder, head)
    for rounds in source:
        run.learn(rounds)
    return source.seconds, run.seconds
