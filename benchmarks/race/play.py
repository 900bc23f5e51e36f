"""Play all that is missing, in several processes."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress

from benchmarks.race.cache import Cache
from benchmarks.race.contest import BUDGETS, Run, play
from benchmarks.race.peers import PEERS, WITH_JAVA, everybody
from benchmarks.race.streams import rows_of

#: Seconds between two writings of the cache.
PAUSE = 10.0


class Job(NamedTuple):
    """One run that is to be played."""

    name: str
    stream: str
    seed: int
    rounds: int


def _work(job: Job) -> Run:
    rows = rows_of(job.stream, job.seed).first(job.rounds)
    return play(everybody()[job.name], job.stream, job.seed, rows)


def race(
    streams: list[str],
    seeds: list[int],
    folder: Path,
    *,
    full: bool = False,
    java: bool = False,
    known: bool = False,
    jobs: int = 2,
) -> tuple[list[Run], list[Job]]:
    """Return the runs of everybody on all streams; those of peers are kept in the folder.

    With ``known`` peers do not play: runs that are not kept are left out, and returned as well.
    """
    cache = Cache(folder / "runs.json")
    people = [one for one in everybody().values() if java or one.group not in WITH_JAVA]
    runs: list[Run] = []
    missing: dict[Job, str] = {}
    left: list[Job] = []
    for stream in streams:
        for seed in seeds:
            players = [one for one in people if seed in one.budget(stream, seeds, full)[1]]
            if not players:
                continue
            rows = rows_of(stream, seed)
            checksums = {raw: rows.checksum(raw) for raw in (False, True)}
            for one in players:
                rounds = min(one.budget(stream, seeds, full)[0], len(rows.labels))
                key = cache.key(one, stream, seed, rounds, checksums[one.raw])
                job, run = Job(one.name, stream, seed, rounds), cache.get(key) if one.kept else None
                if run is not None:
                    runs.append(run)
                elif known and one.group in PEERS:
                    left.append(job)
                else:
                    missing[job] = key
    return runs + _played(missing, cache, jobs), left


def _played(missing: dict[Job, str], cache: Cache, jobs: int) -> list[Run]:
    """Play the missing runs, light ones first, and keep those that are to be kept."""
    people, costs = everybody(), list(BUDGETS)
    order = sorted(missing, key=lambda job: costs.index(people[job.name].cost))
    runs, written = [], time.monotonic()
    with (
        Progress(transient=True) as progress,
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
    ):
        bar = progress.add_task("racing", total=len(order))
        futures = {pool.submit(_work, job): job for job in order}
        for future in as_completed(futures):
            job, run = futures[future], future.result()
            runs.append(run)
            if people[job.name].kept:
                cache.put(missing[job], run)
            if time.monotonic() - written > PAUSE:
                cache.write()
                written = time.monotonic()
            progress.advance(bar)
    cache.write()
    return runs
