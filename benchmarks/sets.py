"""The table of ``python -m benchmarks.sets``: coverage and size of sets of labels under drift.

Every stream is played by ``dl.auto``. Beside the adaptive sets stand those of split conformal
prediction, with the same chances: one threshold, from the first fifth of the rounds. All sets have
the most probable label. ``--fast`` takes the smallest committee; streams can be named.

``needed`` is the coverage without what was covered by single labels while the account of misses was
at its end, where no set can be smaller: it is the goal up to 20.5 rounds, by the docstring of
:mod:`driftline.sets.adaptive`.
"""

from __future__ import annotations

import os
import sys

import numpy as np

import driftline as dl
from benchmarks.race.streams import COVERTYPE_ROWS, _covertype, _electricity, _keystroke

#: The goal, how long a window is, and the share of rounds that fixed sets are calibrated on.
COVERAGE, WINDOW, FIRST = 0.9, 2000, 0.2

SEED = 0


def made(stream):
    """Return inputs, labels from 0 on, and the number of classes."""
    labels = np.asarray(stream.labels)
    labels = (labels + 1) // 2 if stream.task.kind == "sign" else labels
    return stream.inputs, labels, int(labels.max()) + 1


def planted(noise):
    task = dl.tasks.Multiclass(10)
    return made(dl.streams.Planted(task, features=20, flips=5, noise=noise, seed=SEED))


STREAMS = {
    "label flips": lambda: made(dl.streams.LabelFlips(seed=SEED)),
    "rotation": lambda: made(dl.streams.Rotation(seed=SEED)),
    "digit triples": lambda: made(dl.streams.DigitTriples(seed=SEED)),
    "planted, 10 classes": lambda: planted(0.0),
    "planted, noise 0.2": lambda: planted(0.2),
}
if os.environ.get("DRIFTLINE_DATA"):
    STREAMS |= {
        "electricity": lambda: _electricity(SEED),
        f"covertype, {COVERTYPE_ROWS:,}": lambda: _covertype(SEED),
        "keystroke": lambda: _keystroke(SEED),
    }


def fixed(chances, labels):
    """Return split conformal sets: one threshold, from the first rounds."""
    count = int(FIRST * len(labels))
    scores = np.sort(1.0 - chances[np.arange(count), labels[:count]])
    place = min(count - 1, int(np.ceil((count + 1) * COVERAGE)) - 1)
    sets = 1.0 - chances <= scores[place]
    sets[np.arange(len(sets)), chances.argmax(axis=1)] = True
    return sets


def needed(sets, labels):
    """Return the coverage without what single labels covered beyond the account."""
    part, account, cut = dl.sets.Adaptive(COVERAGE), 0.0, 0.0
    for missed in (~sets[np.arange(len(labels)), labels]).tolist():
        moved = part.moved(account, missed)
        cut += moved - (account + missed - (1.0 - COVERAGE))
        account = moved
    return sets[np.arange(len(labels)), labels].mean() - cut / len(labels)


def told(sets, labels):
    """Return coverage over all, the least over a window, and the mean size."""
    covered = sets[np.arange(len(labels)), labels].astype(float)
    sums = np.cumsum(np.r_[0.0, covered])
    window = min(WINDOW, len(labels))
    least = (sums[window:] - sums[:-window]).min() / window
    return covered.mean(), least, sets.sum(axis=1).mean(), sets.any(axis=1).all()


def main(words):
    fast, names = "--fast" in words, [word for word in words if not word.startswith("-")]
    print(f"goal {COVERAGE:.0%}; least over {WINDOW:,} rounds in a row; sizes in labels a set")
    head = f"{'':22}{'single':>8}{'covered':>9}{'needed':>8}{'least':>8}{'size':>7}"
    print(f"{head}  |{'fixed':>8}{'least':>8}{'size':>7}", flush=True)
    for name, stream in STREAMS.items():
        if names and name not in names:
            continue
        inputs, labels, classes = stream()
        learner = dl.auto(dl.tasks.Multiclass(classes), effort="fast" if fast else "balanced")
        chances = learner.run(inputs, labels, probabilities=True).probabilities
        sets = dl.sets.Adaptive(COVERAGE).level().play(chances, labels)
        single = (chances.argmax(axis=1) == labels).mean()
        covered, least, size, filled = told(sets, labels)
        assert filled
        own = needed(sets, labels)
        ours = f"{single:8.1%}{covered:9.2%}{own:8.2%}{least:8.2%}{size:7.3f}"
        other = told(fixed(chances, labels), labels)
        print(f"{name:22}{ours}  |{other[0]:8.2%}{other[1]:8.2%}{other[2]:7.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
