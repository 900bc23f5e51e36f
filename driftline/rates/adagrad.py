r"""Steps that shrink with the gradients seen.

.. math:: \eta_t = \frac{D}{\sqrt{2 \sum_{s \le t} \|G_s\|^2}}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.errors import NoGuaranteeError
from driftline.kernels import RATE, Kernel, kernel
from driftline.rates.base import Rate, Setting

__all__ = ["AdaGrad"]


@kernel(RATE)
def adagrad(loss, risk, grad_sq, input_sq, previous, params, memory):
    """Add up the squared gradients."""
    memory[0] += grad_sq
    return params[0] / math.sqrt(2.0 * memory[0])


@dataclass(frozen=True)
class AdaGrad(Rate):
    """The scalar AdaGrad rate (Orabona, 2019, theorem 4.29), with D the domain's diameter.

    It need not stay inside the admissible range of the theorem.
    """

    kernel: ClassVar[Kernel] = adagrad

    def check(self, setting: Setting) -> None:
        """Refuse a domain without a diameter."""
        if not math.isfinite(setting.diameter):
            raise NoGuaranteeError(
                "AdaGrad takes its scale from the diameter of the domain, "
                "and this one is unbounded; use Ball(diameter)"
            )

    def params(self, setting: Setting) -> tuple[float, ...]:
        """Return the diameter."""
        return (setting.diameter,)

    def memory(self, setting: Setting) -> tuple[float, ...]:
        """Return the sum of squared gradients."""
        return (0.0,)
