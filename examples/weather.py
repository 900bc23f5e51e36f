"""Write weather.csv, a made-up table for ``driftline run`` in which the weather turns.

Every 1500 rows the meaning of the temperature turns: in one season warm days are wet, in the next
cold ones.
"""

import sys
from pathlib import Path

import numpy as np

ROWS = 6000


def write(path: Path) -> None:
    """Write the table, always the same."""
    generator = np.random.default_rng(0)
    warm, wet, wind = generator.normal([14, 65, 12], [7, 15, 5], (ROWS, 3)).T
    towns = np.array(["York", "Bath", "Ely"])[generator.integers(0, 3, ROWS)]
    summer = (np.arange(ROWS) // 1500) % 2 == 1
    drive = np.where(summer, warm - 14, 14 - warm) / 7 + (wet - 65) / 15 + 0.5 * (towns == "Bath")
    rain = drive + 0.4 * generator.standard_normal(ROWS) > 0.5
    lines = ["temperature,humidity,wind,town,rain"]
    for row in zip(warm, wet, wind, towns, np.where(rain, "yes", "no"), strict=True):
        lines.append("{:.1f},{:.0f},{:.1f},{},{}".format(*row))
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "weather.csv")
    write(target)
    print(f"Wrote {target}: {ROWS} rows, the label is the column rain")
