"""
Ranking documents
=================

A query brings documents with graded relevance, and a ranking of them is judged by its normalised
discounted cumulative gain. One weight vector scores all documents.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

stream = dl.streams.PlantedRankings(dl.tasks.NDCG(4), rounds=2000, flips=2, seed=0)
trace = dl.auto(stream.task).run(stream)
print(trace)

query = 1999
order = np.argsort(trace.prediction[query][: len(stream.labels[query])])
print("grades in the order they were ranked:", stream.labels[query][order])

# %%
# The mean of NDCG over the last 100 queries.

plt.plot(1.0 - np.convolve(trace.target_loss, np.ones(100) / 100, "valid"))
plt.xlabel("query")
plt.ylabel("NDCG")
plt.show()
