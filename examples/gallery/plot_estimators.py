"""
In a scikit-learn pipeline
==========================

A classifier for streams is a classifier like any other: in pipelines, under cross-validation,
with text labels. What it learns is learned in the order of the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

import driftline as dl

X, y = load_digits(return_X_y=True)
names = np.array("zero one two three four five six seven eight nine".split())[y]
pipeline = make_pipeline(PCA(30), dl.DriftClassifier())
pipeline.fit(X[:1200], names[:1200])
print("accuracy on rows that were never seen:", pipeline.score(X[1200:], names[1200:]))

# %%
# On a stream whose labels change, predicting batches before learning from them.

stream = dl.streams.DigitTriples(rounds=6000, flips=5, seed=0)
models = {"DriftClassifier": dl.DriftClassifier(), "SGDClassifier": SGDClassifier(loss="log_loss")}
for name, model in models.items():
    right = []
    for start in range(0, 6000, 50):
        rows, labels = stream.inputs[start : start + 50], stream.labels[start : start + 50]
        if start:
            right.append(model.score(rows, labels))
        model.partial_fit(rows, labels, classes=[0, 1, 2])
    plt.plot(np.arange(1, 120) * 50, right, label=f"{name}, {np.mean(right):.3f} on average")
plt.xlabel("round")
plt.ylabel("accuracy of the next 50 rows")
plt.legend(loc="lower right")
plt.show()
