"""What doubtful cases cost: ``python -m benchmarks.abstaining`` prints the table of the docs.

On every stream of the race, with no answer at a cost c: the mean cost of a round, which is the
share of mistakes plus c times the share of rounds without an answer. Seeds are those that the race
reports. With ``--choose`` they are others, on which settings may be chosen; ``--seeds N`` takes
more of them, and a name plays the streams whose names begin with it.
"""

from __future__ import annotations

import argparse

import numpy as np

import driftline as dl
from benchmarks.race.streams import CHOOSING_SEEDS, FIRST_SEED, FIXED, Rows, available, rows_of

COSTS = (0.1, 0.25, 0.4)


def alone(rows: Rows, cost: float | None, decoder: str) -> dl.Trace:
    """Play OGD with its defaults on standardised rows."""
    loss: dl.losses.Loss = dl.losses.Logistic(dl.tasks.Multiclass(rows.classes))
    if decoder == "argmax":
        loss = dl.losses.Scaled(loss, 2.0)
    made = {
        "abstain": lambda: dl.decoders.Abstain(loss, cost),
        "random": lambda: dl.decoders.GapOptimal(loss),
        "argmax": lambda: dl.decoders.Argmax(loss),
    }[decoder]()
    return dl.OGD(loss, made).run(rows.inputs, rows.labels)


def committee(rows: Rows, cost: float | None) -> dl.committee.CommitteeTrace:
    """Play the default committee on rows as they are."""
    task: dl.tasks.Task = dl.tasks.Multiclass(rows.classes)
    if cost is not None:
        task = dl.tasks.Abstaining(task, cost)
    return dl.auto(task).run(rows.raw, rows.labels)


def played(rows: Rows) -> np.ndarray:
    """Return a row for each cost: mean costs of all contestants, and shares without an answer."""
    random = float(alone(rows, None, "random").risk.mean())
    argmax, auto = alone(rows, None, "argmax"), committee(rows, None)
    table = []
    for cost in COSTS:
        own, vote = alone(rows, cost, "abstain"), committee(rows, cost)
        none = [float((trace.prediction == -1).mean()) for trace in (own, vote)]
        paid = [float(trace.target_loss.mean()) for trace in (own, argmax, vote, auto)]
        table.append([paid[0], random, paid[1], paid[2], paid[3], *none])
    return np.array(table)


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and how often each costs at most as much as another."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.abstaining", description=__doc__)
    parser.add_argument("stream", nargs="?", default="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--choose", action="store_true")
    given = parser.parse_args(arguments)
    seeds = list(CHOOSING_SEEDS if given.choose else range(FIRST_SEED, FIRST_SEED + given.seeds))
    print("| stream | c | OGD, Abstain | random | argmax | none | auto, abstaining | auto | none |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for name in available():
        if not name.startswith(given.stream):
            continue
        one = name in FIXED
        tables = np.array([played(rows_of(name, s)) for s in (seeds[:1] if one else seeds)])
        mean, spread = 100.0 * tables.mean(axis=0), 100.0 * np.ptp(tables, axis=0) / 2.0
        for j, cost in enumerate(COSTS):
            m, s = mean[j], spread[j]
            cells = [f"{m[i]:.2f}" + ("" if one else f" ±{s[i]:.2f}") for i in range(5)]
            shares = [f"{m[5]:.0f}%", f"{m[6]:.0f}%"]
            cells = [name, f"{cost:g}", *cells[:3], shares[0], *cells[3:], shares[1]]
            print("| " + " | ".join(cells) + " |", flush=True)
            rows.append([*m[:5], 100.0 * cost])
    told = np.array(rows).T
    for name, one, other in (
        ("OGD with Abstain and with the random decoder", 0, 1),
        ("OGD with Abstain and with argmax", 0, 2),
        ("OGD with Abstain and no answer at all", 0, 5),
        ("auto with abstaining and without", 3, 4),
        ("auto with abstaining and no answer at all", 3, 5),
    ):
        least = int(np.count_nonzero(told[one] <= told[other]))
        mean = [f"{told[i].mean():.2f}" for i in (one, other)]
        words = f"at most as much in {least} of {len(rows)} rows, in the mean"
        print(f"{name}: {words} {' and '.join(mean)}")


if __name__ == "__main__":
    main()
