"""
Rankings of a fixed set
=======================

Every round ranks the same items, such as the brands that a customer prefers, from features of the
round.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

stream = dl.streams.Planted(dl.tasks.LabelRanking(5), rounds=1500, flips=2, features=8, seed=0)
learner = dl.OGD(dl.losses.ConvolutionalFenchelYoung(stream.task), domain=dl.domains.Ball(40.0))
trace = learner.run(stream)
print(trace)
print("truth     ", stream.labels[-1])
print("prediction", trace.prediction[-1])

plt.plot(np.cumsum(trace.risk), label="expected loss")
plt.plot(stream.task.guess.loss * np.arange(len(trace)), "--", label="guessing")
plt.xlabel("round")
plt.legend()
plt.show()
