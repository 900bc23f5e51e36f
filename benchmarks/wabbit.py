"""Vowpal Wabbit on our streams: one against all, from parsed examples or from text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse


def lines_of(X: Any, labels: np.ndarray) -> list[str]:
    """Return rows in Vowpal Wabbit's format, which leaves out zeros; its classes begin at 1."""
    thin = sparse.csr_array(X)
    ends = zip(thin.indptr[:-1], thin.indptr[1:], labels.tolist(), strict=True)
    return [
        f"{label + 1} | "
        + " ".join(
            f"{j}:{v:.9g}"
            for j, v in zip(thin.indices[a:b].tolist(), thin.data[a:b].tolist(), strict=True)
        )
        for a, b, label in ends
    ]


def learning(
    X: Any, labels: np.ndarray, classes: int, text: bool, options: str = ""
) -> Callable[[], object] | None:
    """Return a play of these rounds that only learns; None if there is no Vowpal Wabbit here."""
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        return None
    workspace = Workspace(f"--oaa {classes} --quiet {options}")
    lines = lines_of(X, labels)
    rounds = lines if text else [workspace.example(line) for line in lines]

    def play() -> None:
        for one in rounds:
            workspace.learn(one)

    return play
