"""
Costs that differ
=================

Missing a fault costs five times a false alarm, and asking a person costs a little less. The least
expected cost decides what is predicted, not the most probable class.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

# rows are labels (fine, fault), columns predictions (fine, fault, ask)
costs = np.array([[0.0, 0.2, 0.15], [1.0, 0.0, 0.15]])
task = dl.tasks.CostSensitive(costs)
generator = np.random.default_rng(0)
inputs = generator.standard_normal((3000, 4)) / 2.0
turn = np.where(np.arange(3000) < 1500, 1.0, -1.0)
labels = (turn * inputs[:, 0] + 0.3 * generator.standard_normal(3000) > 0.5).astype(int)

learner = dl.OGD(dl.losses.ConvolutionalFenchelYoung(task), domain=dl.domains.Ball(20.0))
trace = learner.run(inputs, labels)
print(trace)
print("always asking would cost", 0.15 * len(trace))

# %%
# How often each prediction is made, over the last 200 rounds.

for k, name in enumerate(("fine", "fault", "ask")):
    plt.plot(np.convolve(trace.prediction == k, np.ones(200) / 200, "valid"), label=name)
plt.xlabel("round")
plt.ylabel("share of predictions")
plt.legend()
plt.show()
