"""The Polyak-style rate as an optimizer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from driftline import rates
from driftline.errors import InputError
from driftline.kernels.round import TINY
from driftline.rates.polyak import RESOLUTION

__all__ = ["Polyak"]

#: The rate floor of the loss is unknown, so it is set next to 0: where the gap is lost in rounding,
#: the step is the previous one, at first 0.
NO_FLOOR = rates.Setting(rate_floor=5e-324, diameter=math.inf)


class Polyak(torch.optim.Optimizer):
    r"""Gradient steps as long as the surrogate gap of the round allows.

    .. math:: \eta_t = \min\Big\{ \frac{2 (L_t - \mathbb E \ell_t)}{\|G_t\|^2},\, \eta_{t-1} \Big\}

    For a last layer that is linear in its weights, on top of any network, which may have another
    optimizer. The bound of the paper holds against comparators of the last layer, on the features
    that the network computes. With batches, L and the expected target loss are means over the batch
    and G is the gradient of the mean.

    Parameters
    ----------
    params
        The parameters of the last layer.
    monotone, cap
        As in :class:`driftline.rates.Polyak`.
    diameter
        The diameter of the ball around 0 that all parameters together stay in; None for no ball.

    Examples
    --------
    >>> import driftline as dl
    >>> from driftline.integrations.torch import SurrogateLoss
    >>> layer = torch.nn.Linear(4, 3, bias=False)
    >>> surrogate = dl.losses.Logistic(dl.tasks.Multiclass(3))
    >>> criterion = SurrogateLoss(surrogate, dl.decoders.GapOptimal(surrogate))
    >>> optimizer = Polyak(layer.parameters(), diameter=20.0)
    >>> scores = layer(torch.ones(1, 4))
    >>> loss = criterion(scores, [1])
    >>> optimizer.zero_grad()
    >>> loss.backward()
    >>> eta = optimizer.step(loss, criterion.risk(scores, [1]))
    >>> eta > 0.0
    True
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        *,
        monotone: bool = True,
        cap: float = math.inf,
        diameter: float | None = None,
    ):
        if not cap > 0.0:
            raise InputError(f"the cap of a Polyak rate must be positive, but is {cap}")
        if diameter is not None and not diameter > 0.0:
            raise InputError(f"a diameter must be positive, but is {diameter}")
        super().__init__(params, {"monotone": monotone, "cap": cap, "least": cap, "eta": 0.0})
        self.diameter = diameter

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take the parameters, which must all be in one group."""
        if self.param_groups:
            raise InputError("a Polyak rate moves all its parameters by one step: give one group")
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, loss: float | torch.Tensor, risk: float | torch.Tensor) -> float:
        """Update the parameters; return the step size, 0 for none, as where risk exceeds loss.

        ``loss`` and ``risk`` are the surrogate and the expected target loss of this round, as in
        ``criterion(scores, labels)`` and ``criterion.risk(scores, labels)``.
        """
        group = self.param_groups[0]
        moved = [p for p in group["params"] if p.grad is not None]
        grad_sq = sum(float((p.grad.double() ** 2).sum()) for p in moved)
        eta = self._rate(group, _number(loss), _number(risk), grad_sq)
        if eta > 0.0:
            for p in moved:
                p.add_(p.grad, alpha=-eta)
            self._project(group["params"])
            group["eta"] = eta
        return eta

    def _rate(self, group: dict[str, Any], loss: float, risk: float, grad_sq: float) -> float:
        if not all(map(math.isfinite, (loss, risk, grad_sq))):
            raise InputError(
                f"expected finite numbers, but the loss is {loss}, the risk {risk} and the squared "
                f"gradient {grad_sq}"
            )
        if grad_sq <= TINY or loss - risk < -RESOLUTION * loss:  # nothing to learn, or no gap
            return 0.0
        rate, memory = rates.Polyak(group["monotone"], group["cap"]), np.array([group["least"]])
        eta = rate.next(loss, risk, grad_sq, 1.0, group["eta"], NO_FLOOR, memory)
        group["least"] = float(memory[0])
        return eta

    def _project(self, params: list[torch.nn.Parameter]) -> None:
        if self.diameter is None:
            return
        norm = math.sqrt(sum(float((p.double() ** 2).sum()) for p in params))
        if norm > self.diameter / 2.0:
            for p in params:
                p.mul_(self.diameter / 2.0 / norm)


def _number(value: float | torch.Tensor) -> float:
    return float(value.detach()) if isinstance(value, torch.Tensor) else float(value)
