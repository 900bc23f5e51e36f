"""Everybody in the race."""

from __future__ import annotations

from functools import lru_cache

from benchmarks.race import moa_peers, other_peers, ours, river_peers
from benchmarks.race.contest import Contestant

#: The groups of peers, and of ours. MOA's need Java, and play where this is asked for.
PEERS = ("river", "vw", "sklearn", "moa", "guesses")
OURS = ("ours", "members", "sgd")
WITH_JAVA = ("moa",)


@lru_cache(maxsize=1)
def everybody() -> dict[str, Contestant]:
    """Return all contestants by name."""
    rooms = (ours, river_peers, other_peers, moa_peers)
    return {one.name: one for room in rooms for one in room.contestants()}
