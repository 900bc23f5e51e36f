"""A small network under drift: its last layer moves by the Polyak rate.

Points in a ring are told from points in its middle, which no linear learner can; at every change
the two swap labels. A hidden layer learns features by Adam, and the last layer on top of it is
moved either by Adam too, or by steps as long as the surrogate gap allows.
"""

from __future__ import annotations

import numpy as np
import torch

import driftline as dl
from driftline.integrations.torch import Polyak, SurrogateLoss

ROUNDS, CHANGES, WIDTH = 3000, 5, 64


def rings(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the plane, and whether each is in the ring; the answer flips."""
    generator = np.random.default_rng(seed)
    angle, inside = generator.uniform(0, 2 * np.pi, ROUNDS), generator.random(ROUNDS) < 0.5
    radius = np.where(inside, generator.uniform(0, 0.4, ROUNDS), generator.uniform(0.6, 1, ROUNDS))
    points = radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    flipped = (np.arange(ROUNDS) * (CHANGES + 1) // ROUNDS) % 2
    return points, (inside ^ flipped.astype(bool)).astype(int)


def play(step: float | None, seed: int) -> int:
    """Return the mistakes of a network whose last layer moves by Adam, or by Polyak's steps."""
    torch.manual_seed(seed)
    points, labels = rings(seed)
    hidden = torch.nn.Sequential(torch.nn.Linear(2, WIDTH), torch.nn.Tanh())
    torch.nn.init.normal_(hidden[0].weight, std=4.0)
    torch.nn.init.normal_(hidden[0].bias, std=2.0)
    layer = torch.nn.Linear(WIDTH, 2, bias=False)
    torch.nn.init.zeros_(layer.weight)
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(2)), 2.0)
    criterion = SurrogateLoss(loss, dl.decoders.Argmax(loss))
    slow = torch.optim.Adam(hidden.parameters(), lr=1e-3)
    fast: torch.optim.Optimizer = Polyak(layer.parameters(), monotone=False, cap=3.0, diameter=60.0)
    if step is not None:
        fast = torch.optim.Adam(layer.parameters(), lr=step)
    mistakes = 0
    for x, label in zip(torch.as_tensor(points, dtype=torch.float32), labels.tolist(), strict=True):
        scores = layer(hidden(x)[None] / WIDTH**0.5)
        mistakes += int(criterion.predict(scores)[0] != label)
        value = criterion(scores, [label])
        slow.zero_grad()
        fast.zero_grad()
        value.backward()
        slow.step()
        if isinstance(fast, Polyak):
            fast.step(value, criterion.risk(scores, [label]))
        else:
            fast.step()
    return mistakes


def main() -> None:
    """Compare them on three seeds."""
    for step in (0.01, 0.1, 1.0, None):
        counts = [play(step, seed) for seed in range(3)]
        name = "Polyak" if step is None else f"Adam({step:g})"
        print(f"last layer by {name:10} {np.mean(counts):5.0f} mistakes in {ROUNDS}, of {counts}")


if __name__ == "__main__":
    main()
