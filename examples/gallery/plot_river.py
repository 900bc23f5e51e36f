"""
In a River pipeline
===================

Rows are dictionaries whose features may come and go. The classifier predicts and learns one row at
a time, as all models of River do.
"""

import matplotlib.pyplot as plt
from river import compose, datasets, evaluate, linear_model, metrics, preprocessing

from driftline.integrations.river import DriftClassifier

models = {
    "DriftClassifier": DriftClassifier(),
    "softmax regression": compose.Pipeline(
        preprocessing.StandardScaler(), linear_model.SoftmaxRegression()
    ),
}

# %%
# Every label comes ten rows late here, as it does in life.

for name, model in models.items():
    metric = metrics.Accuracy()
    steps = evaluate.iter_progressive_val_score(
        datasets.ImageSegments(), model, metric, step=50, delay=10
    )
    curve = [(step["Step"], step["Accuracy"].get()) for step in steps]
    plt.plot(*zip(*curve, strict=True), label=name)
    print(name, metric)

plt.xlabel("row")
plt.ylabel("accuracy so far")
plt.legend()
plt.show()
