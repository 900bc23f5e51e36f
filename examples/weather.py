"""Write weather.csv, the table of ``driftline run --example``, in which the weather changes."""

import sys
from pathlib import Path

from driftline.app.tables.example import ROWS, example_text


def write(path: Path) -> None:
    """Write the table, always the same."""
    path.write_text(example_text())


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "weather.csv")
    write(target)
    print(f"Wrote {target}: {ROWS} rows, the label is the column rain")
