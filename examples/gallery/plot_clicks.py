"""
Clicks on a ranked list
=======================

A shop shows three of twelve items for every visit, best first, and learns from clicks on these
three. What was not shown is not judged, so that some places go to items that may be better than
they seem. After half of the visits, taste changes.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

VISITS, ITEMS, SHOWN = 6000, 12, 3
rng = np.random.default_rng(0)
tastes = rng.normal(size=(2, 6))
tastes *= 2.5 / np.linalg.norm(tastes, axis=1, keepdims=True)
visits = [rng.normal(size=(ITEMS, 6)) for _ in range(VISITS)]
liked = [
    (items @ tastes[int(t >= VISITS // 2)] + rng.normal(size=ITEMS) > 3.0).astype(int)
    for t, items in enumerate(visits)
]

# %%
# The learner is told of every visit what was clicked on. Here all likes are known, as in a
# simulation; it reads those of shown items.

task = dl.tasks.NDCG(max_relevance=1, cutoff=SHOWN)
learner = dl.auto(task, feedback="clicks")
trace = learner.run(visits, liked)
print(learner.describe())

# %%
# The loss is one minus the discounted clicks over the most that there could be. A list that knew
# all likes would still have some: few items are liked in a visit.

discounts = task.discounts(ITEMS)[:SHOWN]


def loss_of(order, likes):
    """Return the loss of a list."""
    return 1.0 - likes[order[:SHOWN]] @ discounts / discounts.sum()


best = np.array([loss_of(np.argsort(-likes, kind="stable"), likes) for likes in liked])
random = np.array([loss_of(rng.permutation(ITEMS), likes) for likes in liked])
for name, column in (
    ("random lists", random),
    ("clicks", trace.target_loss),
    ("all likes known", best),
):
    plt.plot(np.convolve(column, np.ones(300) / 300, "valid"), label=name)
plt.xlabel("visit")
plt.ylabel("loss over 300 visits")
plt.legend()
plt.show()

# %%
# By tickets, as a service would: show, wait for the click, tell.

ticket = learner.ask(visits[0])
print("places of all items:", ticket.prediction)
learner.tell(ticket, liked[0])
