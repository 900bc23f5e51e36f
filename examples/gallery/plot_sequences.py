"""
Sequences
=========

Every round has a sequence of any length and wants a tag for every position. Neighbouring tags
have scores together, which helps where a position alone does not say enough.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

stream = dl.streams.PlantedSequences(rounds=1500, flips=2, tags=4, seed=0)
chain = dl.auto(stream.task).run(stream)
alone = dl.auto(dl.tasks.Sequence(4, transitions=False)).run(stream.inputs, stream.labels)
print(chain, alone, sep="\n")

for name, trace in (("with transitions", chain), ("each position alone", alone)):
    plt.plot(np.cumsum(trace.target_loss), label=name)
plt.xlabel("sequence")
plt.ylabel("share of wrong tags, added up")
plt.legend()
plt.show()
