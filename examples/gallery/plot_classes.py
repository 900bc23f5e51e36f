"""
Classes
=======

Handwritten digits whose names change: three of ten digits are labels 0, 1 and 2, and at every
change three others are drawn. Nothing is set but the task.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

stream = dl.streams.DigitTriples(rounds=5000, flips=5, seed=0)
committee = dl.auto(stream.task)
trace = committee.run(stream)
print(trace)
print(committee.describe())

# %%
# Every row is predicted before it is learned from. The committee follows whichever of its members
# fares best; three of them start again when a change is noticed.

figure, (above, below) = plt.subplots(2, sharex=True, layout="constrained")
above.plot(np.cumsum(trace.target_loss), label="committee")
above.plot(np.cumsum(trace.member_risk, axis=0), linewidth=0.7, color="0.6")
above.set_ylabel("mistakes so far")
below.stackplot(np.arange(len(trace)), trace.weights.T)
below.set_ylabel("weights of members")
for axes in (above, below):
    for start in stream.starts[1:]:
        axes.axvline(start, color="0.3", linewidth=0.5)
plt.show()
