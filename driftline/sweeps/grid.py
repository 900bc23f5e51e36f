"""Learners for all combinations of some choices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from driftline.errors import InputError
from driftline.learner import Learner

__all__ = ["grid"]


def grid(make: Callable[..., Learner], **choices: Iterable[object]) -> dict[str, Learner]:
    """Return a learner for every combination of choices, by a name that says which.

    Parameters
    ----------
    make
        Returns a new learner for one value of each choice, given by name.
    choices
        The values of each choice. The last one changes fastest.

    Examples
    --------
    >>> import driftline as dl
    >>> loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    >>> def make(diameter, step):
    ...     return dl.OGD(loss, rate=dl.rates.Constant(step), domain=dl.domains.Ball(diameter))
    >>> list(dl.sweeps.grid(make, diameter=[5.0], step=[0.1, 1.0]))
    ['diameter=5, step=0.1', 'diameter=5, step=1']
    """
    if not callable(make):
        raise InputError(f"expected a function that makes a learner, but got {make!r:.80}")
    if not choices:
        raise InputError("a grid needs at least one choice, as in grid(make, diameter=[5.0, 20.0])")
    values: list[list[object]] = []
    for name, given in choices.items():
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"expected a list of values for {name}, but got {given!r:.80}")
        values.append(list(given))
        if not values[-1]:
            raise InputError(f"there is no value for {name}: expected at least one")
    made: dict[str, Learner] = {}
    for combination in itertools.product(*values):
        chosen = dict(zip(choices, combination, strict=True))
        said = ", ".join(f"{name}={_short(value)}" for name, value in chosen.items())
        if said in made:
            raise InputError(f"two choices have the same name, {said}")
        try:
            learner = make(**chosen)
        except InputError as error:
            raise InputError(f"{said}: {error}") from error
        if not isinstance(learner, Learner):
            raise InputError(f"{said}: expected a learner, but got {learner!r:.80}")
        made[said] = learner
    return made


def _short(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
