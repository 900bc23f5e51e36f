"""Run every method on every stream, several times over."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass

import numpy as np

from driftline.errors import InputError
from driftline.paper.catalog import EXPERIMENTS, Experiment
from driftline.paper.results import Results, Run
from driftline.streams import Stream

__all__ = ["Settings", "reproduce"]

#: How many points of a curve are kept.
POINTS = 200


@dataclass(frozen=True)
class Settings:
    """What to run; by default as the experiment's own plan says."""

    task: str = "classification"
    data: tuple[str, ...] = ()
    flips: tuple[int, ...] = (1, 10, 100)
    rounds: int = 0
    trials: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        """Fill in defaults; refuse unknown streams and empty experiments."""
        if self.task not in EXPERIMENTS:
            raise InputError(f"task must be among {', '.join(EXPERIMENTS)}, but is {self.task!r}")
        plan = self.experiment
        for name in ("rounds", "trials"):
            object.__setattr__(self, name, getattr(self, name) or getattr(plan, name))
        object.__setattr__(self, "data", tuple(self.data) or plan.default_data)
        if not self.flips:
            raise InputError("an experiment needs at least one number of flips")
        for name in self.data:
            if name not in plan.streams:
                raise InputError(
                    f"data for {self.task} must be among {', '.join(plan.streams)}, but one is "
                    f"{name!r}"
                )
        if self.trials < 1:
            raise InputError(f"trials must be at least 1, but is {self.trials}")
        for flips in self.flips:
            if not 0 <= flips < self.rounds:
                raise InputError(f"{self.rounds} rounds have no room for {flips} flips")

    @property
    def experiment(self) -> Experiment:
        """The methods and the streams."""
        return EXPERIMENTS[self.task]

    def units(self) -> Iterator[tuple[str, int, int]]:
        """Yield every data set, number of flips and trial."""
        for data in self.data:
            for flips in self.flips:
                for trial in range(self.trials):
                    yield data, flips, trial


def make_stream(settings: Settings, data: str, flips: int, trial: int) -> tuple[Stream, int]:
    """Return the stream of a trial, and the seed of its learners."""
    streams = settings.experiment.streams
    entropy = (settings.seed, list(streams).index(data), flips, trial)
    stream_seed, learner_seed = np.random.SeedSequence(entropy).generate_state(2)
    return streams[data](settings.rounds, flips, int(stream_seed)), int(learner_seed)


def run_unit(settings: Settings, data: str, flips: int, trial: int) -> list[Run]:
    """Let every method play one stream."""
    stream, seed = make_stream(settings, data, flips, trial)
    kept = np.minimum(curve_points(settings.rounds), len(stream)) - 1
    runs = []
    for method in settings.experiment.methods_for(data):
        trace = method.make(stream.task).run(stream, seed=seed)
        runs.append(
            Run(
                data=data,
                flips=flips,
                trial=trial,
                group=method.group,
                method=method.name,
                mistakes=float(trace.target_loss.sum()),
                expected=float(trace.risk.sum()),
                curve=np.cumsum(trace.target_loss)[kept].tolist(),
            )
        )
    return runs


def curve_points(rounds: int) -> np.ndarray:
    """Return the rounds, counted from 1, at which curves are kept."""
    return np.unique(np.linspace(1, rounds, min(POINTS, rounds)).astype(np.int64))


def reproduce(
    settings: Settings, jobs: int | None = None, progress: Callable[[], None] | None = None
) -> Results:
    """Run the experiment, on several processes if ``jobs`` is more than 1."""
    units = list(settings.units())
    jobs = min(jobs or os.cpu_count() or 1, len(units))
    runs: list[Run] = []
    if jobs == 1:
        for unit in units:
            runs += run_unit(settings, *unit)
            if progress is not None:
                progress()
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            futures = [pool.submit(run_unit, settings, *unit) for unit in units]
            try:
                for future in as_completed(futures):
                    runs += future.result()
                    if progress is not None:
                        progress()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    order = {unit: i for i, unit in enumerate(units)}
    runs.sort(key=lambda run: order[run.data, run.flips, run.trial])
    return Results(asdict(settings), curve_points(settings.rounds).tolist(), runs)
