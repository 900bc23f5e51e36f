"""Everybody in the race."""

from __future__ import annotations

from functools import lru_cache

from benchmarks.race import other_peers, ours, river_peers
from benchmarks.race.contest import Contestant

#: The groups of peers, and of ours.
PEERS = ("river", "vw", "sklearn", "guesses")
OURS = ("ours", "members", "sgd")


@lru_cache(maxsize=1)
def everybody() -> dict[str, Contestant]:
    """Return all contestants by name."""
    made = [*ours.contestants(), *river_peers.contestants(), *other_peers.contestants()]
    return {one.name: one for one in made}
