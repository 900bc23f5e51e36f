"""The estimators beside the learners in them, and beside scikit-learn's own."""

from __future__ import annotations

from sklearn.linear_model import SGDClassifier

import driftline as dl
from benchmarks.made import dense_data, digits_data, learner
from benchmarks.timing import best_times

BATCH = 1000


def estimators():
    """Rows in batches of a thousand, and one at a time."""
    yield from _batches("estimators, m = 64", *digits_data(50_000, 3), 3)
    yield from _batches("estimators, m = 784", *dense_data(10_000, 10, 784), 10)
    yield from _single("estimators, m = 64", *digits_data(2000, 3), 3)
    yield from _single("estimators, m = 2", *dense_data(2000, 2, 2), 2)


def _batches(case, X, y, classes):
    """Time partial_fit beside ``run`` of the same learner over all rows at once."""
    names = list(range(classes))

    def fit(how):
        model = dl.DriftClassifier(how)
        for start in range(0, len(y), BATCH):
            rows = slice(start, start + BATCH)
            model.partial_fit(X[rows], y[rows], classes=names if start == 0 else None)

    def one(task):
        return learner(task.classes)

    times = best_times(
        {
            "OGD": lambda: learner(classes).run(X, y),
            "OGD, batches": lambda: fit(one),
            "fast": lambda: dl.auto(dl.tasks.Multiclass(classes), effort="fast").run(X, y),
            "fast, batches": lambda: fit("fast"),
        }
    )
    rates = {name: len(y) / t for name, t in times.items()}
    for name, goal in (("OGD", "<= 1.3"), ("fast", "<= 1.3")):
        what, ratio = f"time of partial_fit / {name}.run", rates[name] / rates[f"{name}, batches"]
        yield case, what, ratio, goal, rates[f"{name}, batches"]


def _single(case, X, y, classes):
    """Time partial_fit of one row at a time beside scikit-learn's."""
    names = list(range(classes))

    def fit(model, count):
        model.partial_fit(X[:1], y[:1], classes=names)
        for t in range(1, count):
            model.partial_fit(X[t : t + 1], y[t : t + 1])

    times = best_times(
        {
            "auto": lambda: fit(dl.DriftClassifier(), 500),
            "fast": lambda: fit(dl.DriftClassifier("fast"), 2000),
            "one": lambda: fit(dl.DriftClassifier(lambda task: learner(task.classes)), 2000),
            "peer": lambda: fit(SGDClassifier(loss="log_loss"), 200),
        }
    )
    peer = 200 / times["peer"]
    for name, what, rows, goal in (
        ("auto", "auto", 500, ""),
        ("fast", "fast", 2000, ">= 20"),
        ("one", "one OGD", 2000, ">= 20"),
    ):
        rate = rows / times[name]
        yield case, f"one row, {what} / SGDClassifier", rate / peer, goal, rate
