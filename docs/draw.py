"""Draw the figures of the documentation that no experiment makes: ``make figures``."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import driftline as dl

IMAGES = Path(__file__).parent / "images"
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#7f7f7f"


def convolutional() -> None:
    """Draw the loss and its decoder for two labels and one score."""
    task = dl.tasks.Binary()
    scores = np.linspace(-3.0, 3.0, 601)
    surrogates = {
        "logistic (base 2)": (dl.losses.Logistic(task), GREY),
        "convolutional, entropy": (_loss(dl.regularizers.Entropy(1.0)), BLUE),
        "convolutional, quadratic": (_loss(dl.regularizers.Quadratic(1.0)), ORANGE),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
    for name, (loss, colour) in surrogates.items():
        values = [loss.value_and_grad([s], 1)[0] for s in scores]
        left.plot(scores, values, color=colour, label=name)
    decoder = dl.decoders.Convolutional(surrogates["convolutional, entropy"][0])
    risk = np.array([decoder.risk([s], 1) for s in scores])
    left.plot(scores, risk, color=GREEN, label="expected target loss of its decoder")
    left.fill_between(
        scores,
        risk,
        [surrogates["convolutional, entropy"][0].value_and_grad([s], 1)[0] for s in scores],
        color=BLUE,
        alpha=0.1,
        linewidth=0,
    )
    left.set(xlabel="score", ylabel="loss if the label is +1", ylim=(0.0, 4.0))
    left.legend(frameon=False, fontsize=9)

    right.plot(scores, 1.0 / (1.0 + np.exp(-scores)), color=GREY, label="logistic: its probability")
    right.plot(scores, 1.0 - risk, color=GREEN, label="convolutional decoder")
    right.plot(
        scores,
        [
            (1.0 + surrogates["convolutional, entropy"][0].value_and_grad([s], 1)[1][0] + 1.0) / 2.0
            for s in scores
        ],
        color=BLUE,
        linestyle="--",
        label="what the gradient believes",
    )
    right.set(xlabel="score", ylabel="probability of +1", ylim=(-0.02, 1.02))
    right.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(-3.0, 3.0)
    figure.savefig(IMAGES / "convolutional.png", dpi=140)


def _loss(regularizer: dl.regularizers.Regularizer) -> dl.losses.Loss:
    return dl.losses.ConvolutionalFenchelYoung(dl.tasks.Binary(), regularizer)


if __name__ == "__main__":
    convolutional()
