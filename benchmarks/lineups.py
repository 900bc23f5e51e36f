"""``python -m benchmarks.lineups``: `auto` on structured streams, beside its members and others.

The others are the methods of ``driftline reproduce`` for the same task, the best of which is chosen
in hindsight for each stream. Real streams are played if ``DRIFTLINE_DATA`` is set.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
import numpy as np

import driftline as dl
from driftline.paper.catalog import EXPERIMENTS

FIRST_SEED = 100


class Case(NamedTuple):
    """A stream of an experiment, how many of its rounds, and how often it may change."""

    task: str
    data: str
    rounds: int
    flips: tuple[int, ...]


PLANTED = (
    Case("multilabel", "planted", 10_000, (1, 10, 100)),
    Case("ordinal", "planted", 2000, (1, 10, 100)),
    Case("ranking", "planted", 2000, (1, 10, 100)),
    Case("matching", "planted", 500, (1, 10)),
    Case("sequence", "planted", 1500, (1, 10, 100)),
    Case("ndcg", "planted", 1500, (1, 10, 100)),
    Case("precision", "planted", 1500, (1, 10, 100)),
    Case("cost", "planted", 1500, (1, 10, 100)),
)
REAL = (
    Case("multilabel", "bibtex", 7000, (1, 10)),
    Case("multilabel", "tmc2007", 10_000, (1, 10)),
    Case("ranking", "pendigits", 2000, (1, 10)),
    Case("sequence", "ocr", 800, (1,)),
    Case("ndcg", "ltr", 251, (1,)),
)


class Row(NamedTuple):
    """Mean losses by seed: the committee, its best member, the best of the others."""

    committee: np.ndarray
    member: np.ndarray
    other: np.ndarray
    name: str


def play(
    case: Case, flips: int, seeds: list[int], make: Callable[[Any], dl.Committee], others: bool
) -> Row:
    """Play one stream with all seeds."""
    experiment = EXPERIMENTS[case.task]
    methods = experiment.methods_for(case.data) if others else ()
    votes, members, table = [], [], []
    for seed in seeds:
        stream = experiment.streams[case.data](case.rounds, flips, seed)
        trace = make(stream.task).run(stream)
        votes.append(trace.target_loss.mean())
        members.append(trace.member_risk.mean(axis=0))
        table.append([method.make(stream.task).run(stream).risk.mean() for method in methods])
    other, name = np.full(len(seeds), np.nan), ""
    if methods:
        chosen, other = best(np.array(table))
        name = methods[chosen].name
    return Row(np.array(votes), best(np.array(members))[1], other, name)


def best(table: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the column of the least mean, and what it is."""
    chosen = int(np.argmin(table.mean(axis=0)))
    return chosen, table[:, chosen]


def rows(
    seeds: list[int], chosen: tuple[str, ...], make: Callable[[Any], dl.Committee], others: bool
) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield "| stream | flips | `auto` | its best member | best of `reproduce`, in hindsight |"
    yield "|---|---:|---:|---:|---|"
    cases = PLANTED + (REAL if os.environ.get("DRIFTLINE_DATA") else ())
    for case in cases:
        if chosen and case.task not in chosen:
            continue
        name = case.task if case.data == "planted" else f"{case.task}, {case.data}"
        for flips in case.flips:
            row = play(case, flips, seeds, make, others)
            cells = [f"{cell.mean():.4f} ± {cell.std():.4f}" for cell in row[:3]]
            yield f"| {name} | {flips} | {cells[0]} | {cells[1]} | {cells[2]} {row.name} |"


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="From 100 on.")
@click.option("--task", "chosen", multiple=True, type=click.Choice(list(EXPERIMENTS)))
def main(seeds: int, chosen: tuple[str, ...]) -> None:
    """Print the mean target loss a round, with its deviation over the seeds."""
    warnings.simplefilter("ignore")
    for line in rows(list(range(FIRST_SEED, FIRST_SEED + seeds)), chosen, dl.auto, True):
        click.echo(line)


if __name__ == "__main__":
    main()
