"""
Labels a day late
=================

Labels of a day come together at its end: the learner predicts on, and learns from all of them then.
At a change it cannot know before the labels do.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

DAY = 100
stream = dl.streams.LabelFlips(rounds=4000, flips=3, seed=0)
traces = {
    "at once": dl.auto(stream.task).run(stream),
    "a day late": dl.auto(stream.task).run(stream, delay=dl.delays.Batches(DAY)),
}
for name, trace in traces.items():
    print(f"{name}: {trace.target_loss.sum():.0f} mistakes")

# %%
# The share of mistakes over the last 100 rounds. Every change costs up to a day more.

for name, trace in traces.items():
    plt.plot(np.convolve(trace.target_loss, np.ones(100) / 100, "valid"), label=name)
plt.xlabel("round")
plt.ylabel("share of mistakes")
plt.legend()
plt.show()

# %%
# A certificate holds for such a run, too: the guard's account is kept in the order in which labels
# came, and half a mistake is allowed for each other label that was outstanding at a time.

late = dl.certify(traces["a day late"], None, stream.inputs, stream.labels)
print(
    f"valid: {late.valid}, {late.expected:.0f} mistakes, at most {late.bounds()['book']:.0f}, "
    f"still to come: {late.outstanding}"
)
