"""Draw the screen and the report of a run for the documentation; needs chromium."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).parent / "images"
ROWS = 6000


def weather(path: Path) -> None:
    """Write a table as somebody might have it: will it rain? The seasons turn what matters."""
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


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("these pictures are taken with chromium, which is not here")
    with tempfile.TemporaryDirectory() as folder:
        weather(Path(folder) / "weather.csv")
        command = ["driftline", "run", "weather.csv", "--label", "rain", "--out", "out"]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        console = Console(record=True, width=88, file=tempfile.TemporaryFile("w"))
        console.print(Text("$ driftline run weather.csv --label rain\n" + done.stdout.rstrip()))
        drawn = console.export_svg(title="driftline run")
        drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # none from elsewhere
        (IMAGES / "run.svg").write_text(drawn)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        shot = f"--screenshot={IMAGES / 'report.png'}"
        page = (Path(folder) / "out" / "report.html").as_uri()
        subprocess.run([browser, *options, "--window-size=900,1250", shot, page], check=True)


if __name__ == "__main__":
    main()
