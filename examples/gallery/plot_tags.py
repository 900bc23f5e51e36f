"""
Sets of tags
============

Every round has a set of tags, and pays the share of tags that are wrong. At a change new weights
are drawn.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

stream = dl.streams.Planted(dl.tasks.Multilabel(8), rounds=4000, flips=4, features=20, seed=0)
trace = dl.auto(stream.task).run(stream)
loss = dl.losses.Scaled(dl.losses.Logistic(stream.task), 2.0)
single = dl.OGD(loss, dl.decoders.Argmax(loss), domain=dl.domains.Ball(60.0)).run(stream)
print(trace, single, sep="\n")

# %%
# The share of wrong tags over the last 100 rounds.

for name, one in (("committee", trace), ("one learner", single)):
    plt.plot(np.convolve(one.target_loss, np.ones(100) / 100, "valid"), label=name)
plt.xlabel("round")
plt.ylabel("share of wrong tags")
plt.legend()
plt.show()
