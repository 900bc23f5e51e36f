"""The results of an experiment: every run, their means, files."""

from __future__ import annotations

import csv
import json
import math
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from driftline import files
from driftline.typing import Json

__all__ = ["Mean", "Results", "Run"]


class Run(NamedTuple):
    """One method on one stream."""

    data: str
    flips: int
    trial: int
    group: str
    method: str
    mistakes: float
    expected: float
    curve: list[float]


class Mean(NamedTuple):
    """A mean over trials and half the width of its 95% interval."""

    value: float
    half: float

    @classmethod
    def of(cls, values: npt.ArrayLike) -> Mean:
        """Return mean and half-width by Student's distribution; NaN for a single value."""
        values = np.asarray(values, dtype=np.float64)
        if len(values) < 2:
            return cls(float(values.mean()), math.nan)
        from scipy.special import stdtrit

        error = values.std(ddof=1) / math.sqrt(len(values))
        return cls(float(values.mean()), float(stdtrit(len(values) - 1, 0.975) * error))

    def __str__(self) -> str:
        """Round both to whole numbers, or to one decimal where they are small."""
        digits = 0 if abs(self.value) >= 100 else 1
        half = "" if math.isnan(self.half) else f" ±{self.half:.{digits}f}"
        return f"{self.value:.{digits}f}{half}"


@dataclass(frozen=True)
class Results:
    """All runs of an experiment."""

    settings: Json
    points: list[int]
    runs: list[Run]

    def select(self, data: str, flips: int, method: str) -> list[Run]:
        """Return the runs of a method on one kind of stream."""
        return [
            run
            for run in self.runs
            if run.data == data and run.flips == flips and run.method == method
        ]

    def methods(self, group: str | None = None) -> list[str]:
        """Return the names of the methods, in order."""
        return list(dict.fromkeys(r.method for r in self.runs if group in (None, r.group)))

    def mean(self, data: str, flips: int, method: str, column: str) -> Mean:
        """Return the mean of ``mistakes`` or of the ``expected`` loss."""
        return Mean.of([getattr(run, column) for run in self.select(data, flips, method)])

    def best(self, group: str, data: str, flips: int) -> str:
        """Return the method of a group with the fewest mistakes on a stream, in hindsight."""
        return min(
            self.methods(group), key=lambda name: self.mean(data, flips, name, "mistakes").value
        )

    def summary(self) -> list[Json]:
        """Return a row for every stream and method."""
        rows = []
        for data in self.settings["data"]:
            for flips in self.settings["flips"]:
                for method in self.methods():
                    mistakes, expected = (
                        self.mean(data, flips, method, column)
                        for column in ("mistakes", "expected")
                    )
                    rows.append(
                        {
                            "data": data,
                            "flips": flips,
                            "group": self.select(data, flips, method)[0].group,
                            "method": method,
                            "mistakes": mistakes.value,
                            "mistakes_half": mistakes.half,
                            "expected": expected.value,
                            "expected_half": expected.half,
                        }
                    )
        return rows

    def write(self, folder: Path) -> list[Path]:
        """Write all runs as CSV, and settings, versions, means and curves as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        table, record = folder / "results.csv", folder / "results.json"
        with files.drafted(table) as draft, draft.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Run._fields[:-1])
            writer.writerows(run[:-1] for run in self.runs)
        content = {
            "settings": self.settings,
            "versions": {name: version(name) for name in ("driftline", "numpy", "numba")}
            | {"python": platform.python_version()},
            "summary": [
                {key: None if value != value else value for key, value in row.items()}
                for row in self.summary()
            ],
            "points": self.points,
            "runs": [run._asdict() for run in self.runs],
        }
        files.replace(record, json.dumps(content).encode())
        return [table, record]
