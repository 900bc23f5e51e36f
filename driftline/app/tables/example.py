"""A made-up table to begin with, in which the weather changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from driftline import files
from driftline.errors import InputError

__all__ = ["NAME", "ROWS", "example_text", "write_example"]

NAME, ROWS = "weather.csv", 6000


def example_text() -> str:
    """Return the table as CSV, always the same; the last column, ``rain``, is the label.

    Every 1500 rows the effect of the temperature is reversed: in one season warm days are wet, in
    the next cold ones.

    >>> print(example_text()[:70])
    temperature,humidity,wind,town,rain
    14.9,63,15.2,Bath,no
    14.7,57,13.8,
    """
    generator = np.random.default_rng(0)
    warm, wet, wind = generator.normal([14, 65, 12], [7, 15, 5], (ROWS, 3)).T
    towns = np.array(["York", "Bath", "Ely"])[generator.integers(0, 3, ROWS)]
    summer = (np.arange(ROWS) // 1500) % 2 == 1
    drive = np.where(summer, warm - 14, 14 - warm) / 7 + (wet - 65) / 15 + 0.5 * (towns == "Bath")
    rain = drive + 0.4 * generator.standard_normal(ROWS) > 0.5
    lines = ["temperature,humidity,wind,town,rain"]
    for row in zip(warm, wet, wind, towns, np.where(rain, "yes", "no"), strict=True):
        lines.append("{:.1f},{:.0f},{:.1f},{},{}".format(*row))
    return "\n".join(lines) + "\n"


def write_example(path: Path) -> bool:
    """Write the table; return whether it was not there yet. Another file there is refused."""
    text = example_text()
    if path.exists():
        if path.is_file() and path.read_bytes() == text.encode():
            return False
        raise InputError(f"{path} is there, and is not the example: go to another folder first")
    files.replace(path, text.encode())
    return True
