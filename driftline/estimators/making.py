"""The learner behind an estimator: by name, or made by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy.typing as npt

from driftline.committee import LEARNERS, Committee, named
from driftline.errors import InputError
from driftline.learner import Member
from driftline.tasks import Task

__all__ = ["How", "make_learner"]

#: The name of a learner, or a function that makes one for a task.
How: TypeAlias = str | Callable[[Task], Member | Committee]


def make_learner(
    how: How | None,
    task: Task,
    *,
    scaling: bool = False,
    dtype: npt.DTypeLike = "float64",
    categories: dict[int, int] | None = None,
    seed: int = 0,
) -> Member | Committee:
    """Return a learner for a task.

    By a name of :data:`~driftline.committee.LEARNERS`: ``"auto"`` is :func:`driftline.auto`,
    ``"paper"`` has the random decoder of the theorem. A function is called with the task;
    ``scaling``, ``dtype`` and ``categories`` do not apply to the learner that it returns.

    >>> import driftline as dl
    >>> make_learner("fast", dl.tasks.Multiclass(3))
    Committee(7 members, 'mix', Multiclass(classes=3))
    """
    if isinstance(how, str) and how in LEARNERS:
        given: Any = {"scaling": scaling, "dtype": dtype, "categories": categories or ()}
        return named(how, task, seed=seed, **given)
    if not callable(how):
        raise InputError(
            f"learner must be one of {', '.join(map(repr, LEARNERS))} or a function from a task "
            f"to a learner, but is {how!r}"
        )
    learner = how(task)
    if not isinstance(learner, (Member, Committee)) or learner.task != task:
        raise InputError(
            f"expected an OGD or a Committee for {task!r}, or another member of committees, but "
            f"got {learner!r}"
        )
    if learner.rounds:
        raise InputError(f"expected a new learner, but {learner!r} has played {learner.rounds}")
    return learner
