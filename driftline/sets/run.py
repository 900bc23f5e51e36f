"""A run with a set of labels for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driftline.delays import Delay
from driftline.errors import InputError
from driftline.learner import Shell, checked_stream
from driftline.sets.level import SetLevel
from driftline.tasks import Task
from driftline.typing import Inputs, Labels

if TYPE_CHECKING:
    from driftline.sets.adaptive import Adaptive

__all__ = ["SetRun", "check_task", "played"]


@dataclass(frozen=True, eq=False, repr=False)
class SetRun:
    """The sets of a run, a row a round: which labels each had, before its label was seen.

    ``sets`` has a column for every label (for signs -1 and 1), ``covered`` says whether the label
    was in it, and ``size`` how many labels were. ``trace`` is that of the learner, and ``level``
    the level of sets at the end, to go on from.
    """

    sets: np.ndarray
    covered: np.ndarray
    trace: Any
    level: SetLevel

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.sets)

    def __repr__(self) -> str:
        """Name the rounds, the coverage and the mean size."""
        return (
            f"SetRun({len(self)} rounds, {self.coverage:.1%} covered, {self.mean_size:.2f} labels "
            "a set)"
        )

    @property
    def size(self) -> np.ndarray:
        """How many labels each set has."""
        return self.sets.sum(axis=1)

    @property
    def mean_size(self) -> float:
        """How many labels a set has on average."""
        return float(self.size.mean())

    @property
    def coverage(self) -> float:
        """The share of the rounds whose label came, and was in the set; nan if none came."""
        came = self.covered[self.trace.arrived]
        return float(came.mean()) if len(came) else float("nan")

    def over_time(self, window: int = 500) -> np.ndarray:
        """Return the coverage of every ``window`` rounds in a row."""
        whole = isinstance(window, (int, np.integer))
        if not whole or not 1 <= window <= len(self):
            raise InputError(f"a window has 1 to {len(self)} rounds, not {window!r}")
        sums = np.cumsum(np.r_[0.0, self.covered])
        return (sums[window:] - sums[:-window]) / window


def check_task(task: Task) -> None:
    """Refuse tasks whose labels have no chances that exclude each other."""
    if not task.geometry.exclusive:
        raise InputError(f"sets are of classes, signs or levels, but the task is {task!r}")


def _check_learner(learner: Any) -> None:
    """Refuse what is no learner, and learners that do not see all labels."""
    if not isinstance(learner, Shell):
        raise InputError(f"expected a learner, as by dl.auto(task), but got {learner!r:.80}")
    check_task(learner.task)
    if not learner.feedback.full:
        raise InputError(
            "the level of sets moves by labels, but this learner does not see those that it "
            "missed: give one that learns from labels, as by dl.auto(task)"
        )


def played(
    part: Adaptive,
    learner: Any,
    inputs: Inputs,
    labels: Labels,
    level: SetLevel | None,
    delay: Delay | npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> SetRun:
    """Let a learner play a stream, and make sets by the probabilities before every row."""
    _check_learner(learner)
    level = part.level() if level is None else level.copy()
    if level.part != part:
        raise InputError(f"the level is that of {level.part!r}, and these sets are {part!r}")
    if labels is None and sample_weight is None:
        sample_weight = getattr(inputs, "sample_weight", None)
    checked_stream(learner.task, inputs, labels)
    if labels is None:
        inputs, labels = inputs.inputs, inputs.labels
    if len(level.waiting) != learner._waits:
        raise InputError(
            f"the learner waits for {learner._waits} labels, and the level for "
            f"{len(level.waiting)}: give the level that the learner's last run ended with"
        )
    late, given = None, {"sample_weight": sample_weight, "probabilities": True}
    if delay is None:
        trace = learner.run(inputs, labels, **given)
    else:
        events, late = learner._run_events(inputs, labels, delay, **given)
        trace = events.rounds_of(late)
    codes = np.asarray(labels).ravel().astype(np.int64)
    codes = learner.task.labels.codes(codes)
    sets = level.play(trace.probabilities, codes, late)
    return SetRun(sets, sets[np.arange(len(codes)), codes], trace, level)
