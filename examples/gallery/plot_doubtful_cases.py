"""
Doubtful cases to a person
==========================

A wrong answer costs 1, and asking a person a quarter of that. The learner answers where it is sure
enough, and by the theorem its cost is bounded as that of mistakes is, with no randomness.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

generator = np.random.default_rng(0)
inputs = generator.standard_normal((6000, 4)) / 2.0
turn = np.where(np.arange(6000) < 3000, 1.0, -1.0)
labels = (turn * inputs[:, 0] + 0.2 * generator.standard_normal(6000) > 0.0).astype(int)

task = dl.tasks.Abstaining(dl.tasks.Multiclass(2), cost=0.25)
trace = dl.auto(task, effort="fast").run(inputs, labels)
always = dl.auto(dl.tasks.Multiclass(2), effort="fast").run(inputs, labels)
asked = trace.prediction == -1
print(f"asked a person in {asked.mean():.1%} of the rounds")
print(f"wrong among the others {np.mean(trace.prediction[~asked] != labels[~asked]):.1%}")
print(
    f"cost {trace.target_loss.mean():.3f}, with an answer each time {always.target_loss.mean():.3f}"
)

# %%
# After the change the learner doubts, and asks: over the last 200 rounds.

window = np.ones(200) / 200
for values, name in (
    (asked, "asked a person"),
    (trace.target_loss, "cost"),
    (always.target_loss, "cost with an answer each time"),
):
    plt.plot(np.convolve(values, window, "valid"), label=name)
plt.xlabel("round")
plt.ylabel("share, or mean cost of a round")
plt.legend()
plt.show()
