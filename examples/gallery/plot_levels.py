"""
Ordered levels
==============

A label is a level, such as one to five stars, and a prediction two levels off is twice as bad as
one that is one off.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

stream = dl.streams.Planted(dl.tasks.Ordinal(5), rounds=2000, flips=2, features=8, seed=0)
loss = dl.losses.ConvolutionalFenchelYoung(stream.task)
learner = dl.OGD(loss, domain=dl.domains.Ball(40.0))
trace = learner.run(stream)
print(learner.describe())
print(trace)

# %%
# Levels that are known not at all would be off by two of four steps or so.

plt.plot(np.cumsum(trace.risk), label="expected loss")
plt.plot(stream.task.guess.loss * np.arange(len(trace)), "--", label="guessing")
plt.xlabel("round")
plt.legend()
plt.show()
