"""Runs of before: who is kept plays again only where code, settings or rows have changed."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.race.contest import Contestant, Run


class Cache:
    """Runs in a file, by all that they depend on."""

    def __init__(self, path: Path):
        self.path = path
        self._runs = json.loads(path.read_text()) if path.exists() else {}

    @staticmethod
    def key(one: Contestant, stream: str, seed: int, rounds: int, checksum: int) -> str:
        """Return what a run depends on, in one line."""
        rows = f"{stream}, seed {seed}, {rounds} rows {checksum:08x}"
        return f"{one.name} | {one.package} {one.code} | {rows}"

    def get(self, key: str) -> Run | None:
        """Return a run of before, if there is one."""
        return Run(*self._runs[key]) if key in self._runs else None

    def put(self, key: str, run: Run) -> None:
        """Keep a run; what raised will play again."""
        if not run.error:
            self._runs[key] = list(run)

    def write(self) -> None:
        """Write the file anew, at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self._runs))
        fresh.replace(self.path)
