"""Classes and features that first appear when a learner has played for long."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.committee import Committee
from driftline.errors import InputError
from driftline.learner import OGD
from driftline.tasks import Multiclass, Multilabel

__all__ = ["with_classes", "with_features"]


def with_classes(learner: Any, classes: int) -> Any:
    """Return a learner of classes or tags that knows more, and otherwise goes on as it was.

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
    if not isinstance(task, (Multiclass, Multilabel)):
        raise InputError(f"only classes and tags can become more, not {task!r}")
    known = task.dim
    if classes < known:
        raise InputError(f"there are {known} classes already, so not only {classes}")
    about, arrays, parts = _opened(learner)
    for start, part in parts.items():
        part["config"] = _replaced(part["config"], task.config(), type(task)(classes).config())
        _insert(arrays, start, part, 0, known, classes - known)
    return type(learner).from_saved(about, arrays)


def with_features(learner: Any, features: int) -> Any:
    """Return a learner that takes longer rows, and otherwise goes on as it was.

    New features come after the old ones. Their weights are 0, as if they had been 0 in all
    rows so far, and so is what a scaling has seen of them. Without a scaling, scores of rows that
    are 0 there stay as they are. A scaling of dense rows divides by the root of the number of
    features: under one these scores become smaller, by up to the root of the ratio of old to new.

    >>> import driftline as dl
    >>> stream = dl.streams.DigitTriples(rounds=300, flips=0, seed=0)
    >>> committee = dl.auto(stream.task)
    >>> _ = committee.run(stream)
    >>> longer = with_features(committee, 70)
    >>> longer.step([0.0] * 70, 1).target_loss <= 1.0
    True
    """
    about, arrays, parts = _opened(learner)
    if learner.task.ragged:
        raise InputError(f"only plain rows can become longer, not those of {learner.task!r}")
    scaling = about.get("scaling")
    known = scaling["features"] if scaling else next(iter(parts.values()))["features"]
    if known is None:
        return learner
    if features < known:
        raise InputError(f"there are {known} features already, so not only {features}")
    more = features - known
    for start, part in parts.items():
        _insert(arrays, start, part, 1, known, more)
        part["features"] += more
    if scaling:
        longer = learner.scaling.with_features(features)
        about["scaling"], arrays["scaling"] = longer.config(), longer.state
    return type(learner).from_saved(about, arrays)


def _opened(learner: Any) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, Any]]:
    """Return a learner as plain data, and in it each single learner by the start of its names."""
    if isinstance(learner, Committee):
        about, arrays = learner.to_saved()
        return about, arrays, {f"{j}.": part for j, part in enumerate(about["members"])}
    if isinstance(learner, OGD):
        about, arrays = learner.to_saved()
        return about, arrays, {"": about}
    raise InputError(f"expected a learner or a committee, but got {learner!r}")


def _insert(
    arrays: dict[str, np.ndarray], start: str, part: Any, axis: int, place: int, more: int
) -> None:
    """Put weights of 0 between others: rows are scores (axis 0) and columns features (axis 1)."""
    name = f"{start}weights"
    if name in arrays:
        axis = 1 - axis if part["transposed"] else axis
        arrays[name] = np.insert(arrays[name], [place] * more, 0.0, axis=axis)


def _replaced(config: Any, old: dict[str, Any], new: dict[str, Any]) -> Any:
    """Return a configuration in which one part stands for another."""
    if config == old:
        return new
    if isinstance(config, dict):
        return {key: _replaced(value, old, new) for key, value in config.items()}
    return [_replaced(item, old, new) for item in config] if isinstance(config, list) else config
