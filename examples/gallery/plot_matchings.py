"""
Matchings
=========

Every round assigns rows to columns, one to one: jobs to machines, say. The loss is the share of
rows that are matched wrongly.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

stream = dl.streams.Planted(dl.tasks.Matching(4), rounds=1000, flips=1, features=8, seed=0)
loss = dl.losses.SparseMAP(stream.task, scale=4.0)
learner = dl.OGD(loss, domain=dl.domains.Ball(60.0))
trace = learner.run(stream)
print(learner.describe())
print(trace)

plt.plot(np.convolve(trace.risk, np.ones(50) / 50, "valid"))
plt.xlabel("round")
plt.ylabel("share of rows matched wrongly")
plt.show()
