"""
A guarantee that can be checked
===============================

The method of the paper on its own stream, and its certificate: a bound of the total loss against
any comparator, computed anew from the recorded steps.
"""

import matplotlib.pyplot as plt

import driftline as dl

stream = dl.streams.LabelFlips(rounds=5000, flips=4, seed=0)
loss = dl.losses.Logistic(stream.task)
learner = dl.OGD(loss, dl.decoders.GapOptimal(loss), dl.rates.Polyak(), dl.domains.Ball(20.0))
trace = learner.run(stream)
certificate = dl.certify(trace, stream.comparator.scaled(8.0), stream)
print(certificate)

# %%
# The bound holds on every stretch of rounds.

print(certificate.over(1000, 2000))
certificate.plot()
plt.show()
