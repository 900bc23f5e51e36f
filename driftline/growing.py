"""Classes that first appear when a learner has played for long."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.committee import Committee
from driftline.errors import InputError
from driftline.learner import OGD
from driftline.tasks import Multiclass

__all__ = ["with_classes"]


def with_classes(learner: Any, classes: int) -> Any:
    """Return a learner of classes that knows more of them, and otherwise goes on as it was.

    The weights of new classes are 0: as if they had been there from the start, but no label of
    theirs had ever been seen and no step had ever been made for them. Scores of the classes
    known before are unchanged.

    >>> import driftline as dl
    >>> stream = dl.streams.DigitTriples(rounds=300, flips=0, seed=0)
    >>> learner = dl.OGD(dl.losses.Logistic(stream.task))
    >>> _ = learner.run(stream)
    >>> more = with_classes(learner, 5)
    >>> more.weights.shape, bool((more.weights[:3] == learner.weights).all())
    ((5, 64), True)
    """
    task = learner.task
    if not isinstance(task, Multiclass):
        raise InputError(f"only classes can become more, not {task!r}")
    if classes < task.classes:
        raise InputError(f"there are {task.classes} classes already, so not only {classes}")
    if isinstance(learner, Committee):
        about, arrays = learner.to_saved()
        parts = {f"{j}.": part for j, part in enumerate(about["members"])}
    elif isinstance(learner, OGD):
        about, arrays = learner.to_saved()
        parts = {"": about}
    else:
        raise InputError(f"expected a learner or a committee, but got {learner!r}")
    for start, part in parts.items():
        part["config"] = _replaced(part["config"], task.config(), Multiclass(classes).config())
        weights = arrays.get(f"{start}weights")
        if weights is not None:
            more = [(0, 0), (0, classes - task.classes)]
            arrays[f"{start}weights"] = np.pad(weights, more if part["transposed"] else more[::-1])
    return type(learner).from_saved(about, arrays)


def _replaced(config: Any, old: dict[str, Any], new: dict[str, Any]) -> Any:
    """Return a configuration in which one part stands for another."""
    if config == old:
        return new
    if isinstance(config, dict):
        return {key: _replaced(value, old, new) for key, value in config.items()}
    return [_replaced(item, old, new) for item in config] if isinstance(config, list) else config
