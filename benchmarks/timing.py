"""Time contenders in turn, so that a noisy machine is noisy for all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_times(contenders: dict[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """Return the least time of each contender over interleaved repetitions, after a warm-up."""
    best = dict.fromkeys(contenders, float("inf"))
    for play in contenders.values():
        play()
    for _ in range(repeats):
        for name, play in contenders.items():
            start = time.perf_counter()
            play()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
