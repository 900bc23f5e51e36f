"""
A loss of one's own
===================

A loss is a class with a value and a gradient. Public checks say whether it does what it claims,
and a learner plays it like any other, in plain Python.
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl
from driftline.checks import check_decoder, check_loss


@dataclass(frozen=True)
class SquaredMargin(dl.losses.Loss):
    """The squared shortfall of the margin below 1."""

    task: dl.tasks.Multiclass
    self_bound: ClassVar[float] = 4.0
    argmax_ratio: ClassVar[float] = 1.0

    def value_and_grad(self, theta, label):
        """Return the loss and its gradient."""
        rivals = np.where(np.arange(theta.size) == label, -np.inf, theta)
        rival = int(np.argmax(rivals))
        short = max(0.0, 1.0 - theta[label] + theta[rival])
        grad = np.zeros_like(theta)
        grad[rival], grad[label] = 2.0 * short, -2.0 * short
        return short**2, grad


stream = dl.streams.DigitTriples(rounds=2000, flips=2, seed=0)
loss = SquaredMargin(stream.task)
check_loss(loss, trials=30)

# %%
# The shortfall is at least 1 where the largest score is wrong, so the target loss is never above
# the loss: that is its ``argmax_ratio``. Twice the loss then has a surrogate gap of one half, and
# the theorem holds with no randomness.

twice = dl.losses.Scaled(loss, 2.0)
learner = dl.OGD(twice, dl.decoders.Argmax(twice))
check_decoder(learner.decoder, trials=30)
print(learner.describe())
trace = learner.run(stream)
print(trace)
plt.plot(np.cumsum(trace.target_loss))
plt.xlabel("round")
plt.ylabel("mistakes so far")
plt.show()
