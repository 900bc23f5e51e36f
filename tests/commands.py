"""Commands as a person calls them, on tables made up for them."""

from __future__ import annotations

import csv
import time

import numpy as np
from click.testing import CliRunner

from driftline.app.cli import main


def call(*arguments, stdin=None, learner="fast"):
    """Run a command; ``run`` with this learner where none is named: most tests are not about it."""
    words = [str(a) for a in arguments]
    if words[0] == "run" and learner is not None and not {"--learner", "--resume"} & {*words}:
        words += ["--learner", learner]
    return CliRunner().invoke(main, words, input=stdin)


def data(rows=200, features=3, seed=0):
    random = np.random.default_rng(seed)
    inputs = random.standard_normal((rows, features)).round(4)
    labels = (inputs[:, 0] + 0.3 * random.standard_normal(rows) > 0).astype(int)
    labels[rows // 2 :] = 1 - labels[rows // 2 :]
    return inputs, labels


def write_csv(path, inputs, labels, names="uv", end="\n"):
    columns = [f"x{j}" for j in range(inputs.shape[1])]
    lines = [",".join([*columns, "label"])]
    for x, y in zip(inputs.tolist(), labels, strict=True):
        lines.append(",".join([*map(repr, x), names[y]]))
    path.write_text(end.join(lines) + end)
    return path


def predictions(folder):
    with (folder / "predictions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def length(path):
    """Return how many whole lines a file has, 0 if there is none yet."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for(process, what):
    """Wait until something is true that a process brings about."""
    until = time.monotonic() + 120
    while not what():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.01)
