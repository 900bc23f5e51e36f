r"""What another policy did: its actions, their probabilities, and what they cost.

With :math:`a_t` drawn by probability :math:`q_t` and the loss :math:`\ell_t(a_t)` in [0, 1], let the
action be the label, with the sample weight

.. math:: h_t = \frac{1 - \ell_t(a_t)}{q_t}.

On average over the logged draws, a prediction :math:`\hat y` with weight :math:`h_t` then costs

.. math:: \mathbb E\, h_t 1[\hat y \ne a_t] = \sum_a (1 - \ell_t(a)) - (1 - \ell_t(\hat y)),

its own loss, and a number that no prediction changes (0 where one action has loss 0 and all others 1).
So every learner learns from such a stream by its sample weights, and every bound of weighted rounds
holds: they are bounds of the estimate. In the worst case a bound's price of start and path is
multiplied by the largest weight, which is what small probabilities cost.

No answer (:class:`~driftline.tasks.Abstaining`) costs c, whatever was logged; with weights it costs
:math:`h_t c`, which is c on average only where that number is 0. So an estimate takes c for it.

References
----------
Dudik, Langford and Li (2011), *Doubly robust policy evaluation and learning*; Beygelzimer and
Langford (2009), *The offset tree for learning with partial labels*.
"""  # noqa: E501

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.parts import from_config
from driftline.streams.base import Stream
from driftline.tasks import Multiclass, Task
from driftline.typing import Inputs

__all__ = ["Estimate", "Logged"]

#: Sample weights are at most this.
LEAST_PROBABILITY = 1e-6


class Estimate(NamedTuple):
    """An estimated mean loss, and its standard error over the logged draws."""

    loss: float
    error: float


class Logged(Stream):
    """Rounds that another policy played, to learn from and to be compared with.

    Run a learner on it as on any stream: ``learner.run(logged)``. :meth:`estimate` then says what
    its predictions would have cost in place of the logged actions.

    Parameters
    ----------
    inputs
        What the policy saw, a row each.
    actions
        What it did, from 0.
    probabilities
        The probability with which it did that, 1e-6 or more: recorded when it acted, not estimated
        afterwards.
    losses
        What that cost, from 0 to 1.
    classes
        How many actions there are. Default: as many as were seen.
    clip
        The largest inverse probability that is used; larger ones are cut, which makes estimates
        less random, and pessimistic. Default: none are.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.Planted(dl.tasks.Multiclass(3), rounds=4000, flips=0, seed=0)
    >>> actions = np.random.default_rng(1).integers(3, size=4000)
    >>> losses = (actions != stream.labels).astype(float)
    >>> logged = Logged(stream.inputs, actions, np.full(4000, 1 / 3), losses)
    >>> trace = dl.auto(logged.task, effort="fast").run(logged)
    >>> round(logged.loss, 2), bool(logged.estimate(trace).loss < 0.25)
    (0.67, True)
    """

    def __init__(
        self,
        inputs: Inputs,
        actions: npt.ArrayLike,
        probabilities: npt.ArrayLike,
        losses: npt.ArrayLike,
        *,
        classes: int | None = None,
        clip: float | None = None,
    ):
        try:
            rounds = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
        except (TypeError, IndexError):
            raise InputError(f"inputs must have a row each round, not {inputs!r:.80}") from None
        if not rounds:
            raise InputError("no rounds were logged: expected one or more")
        self.probabilities = _column(probabilities, rounds, "probabilities", LEAST_PROBABILITY)
        self.losses = _column(losses, rounds, "losses", 0.0)
        number = isinstance(clip, (int, float)) and not isinstance(clip, bool)
        if clip is not None and not (number and 1.0 <= clip < math.inf):
            raise InputError(f"clip must be a number of 1 or more, not {clip!r:.80}")
        try:
            seen = np.asarray(actions)
            most = int(seen.max()) + 1
        except (TypeError, ValueError):
            raise InputError(f"actions must be whole numbers from 0, not {actions!r:.80}") from None
        self.task = Multiclass(max(2, most) if classes is None else classes)
        self.labels = self.task.labels.check_all(actions)[:, 0]
        if len(self.labels) != rounds:
            raise InputError(f"there are {rounds} inputs but {len(self.labels)} actions")
        self.inputs = inputs
        self.starts = np.zeros(1, dtype=np.int64)
        inverse = 1.0 / self.probabilities
        self.inverse = inverse if clip is None else np.minimum(inverse, clip)
        #: How much each round counts in learning.
        self.sample_weight = (1.0 - self.losses) * self.inverse
        self.sample_weight[self.sample_weight < 1e-9] = 0.0

    @property
    def loss(self) -> float:
        """The mean loss of the logged actions."""
        return float(self.losses.mean())

    @property
    def largest_weight(self) -> float:
        """By how much the price of start and path in a bound is multiplied at most."""
        return float(self.sample_weight.max())

    def estimate(self, trace: Any) -> Estimate:
        """Return the mean loss that the predictions of a run would have had, by inverse weights.

        It has no bias if probabilities are right and none was clipped: a prediction depends on
        rounds before it alone. Of learners that may have no answer, what they predicted counts.
        """
        risk, weights = np.asarray(trace.risk), trace.sample_weight
        if risk.shape != self.losses.shape:
            raise InputError(f"the run has {len(risk)} rounds, but {len(self)} were logged")
        if not np.array_equal(
            np.ones(len(risk)) if weights is None else weights, self.sample_weight
        ):
            raise InputError(
                "the run had other sample weights than the logged rounds: expected the trace of "
                "learner.run(logged)"
            )
        if not (known := np.isfinite(risk)).all():
            raise InputError(
                f"labels of {np.count_nonzero(~known)} rounds have not come in this run: expected "
                "one without a delay"
            )
        gains = self.sample_weight - risk  # of a round in which what was done is predicted
        if (cost := _cost_of_none(trace)) is not None:
            gains = self.sample_weight - np.asarray(trace.target_loss)
            gains[np.asarray(trace.prediction) < 0] = 1.0 - cost
        error = float(gains.std(ddof=1) / math.sqrt(len(gains))) if len(gains) > 1 else math.inf
        return Estimate(1.0 - float(gains.mean()), error)


def _cost_of_none(trace: Any) -> float | None:
    """Return what no answer costs in a run, None if there always is one."""
    config = getattr(getattr(trace, "members", [trace])[0], "config", {})
    if (saved := config.get("decoder", config.get("task"))) is None:
        return None
    part: Any = from_config(saved)
    task = part if isinstance(part, Task) else part.task
    return task.predictions.doubt.cost if task.answers is not task else None


def _column(values: npt.ArrayLike, rounds: int, name: str, least: float) -> np.ndarray:
    """Return numbers between a least one and 1, one for each round, or refuse them."""
    try:
        made = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from None
    if made.shape != (rounds,):
        raise InputError(f"expected {name} of {rounds} rounds, but got the shape {made.shape}")
    good = (made >= least) & (made <= 1.0)
    if not good.all():
        bad = int(np.argmin(good))
        raise InputError(
            f"{name} must lie between {least:g} and 1, but that of row {bad} is {made[bad]:g}"
        )
    return made
