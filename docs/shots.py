"""Draw the screen and the report of a run for the documentation; needs chromium."""

import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).parent / "images"
WEATHER = Path(__file__).parents[1] / "examples" / "weather.py"


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("these pictures are taken with chromium, which is not here")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, WEATHER], cwd=folder, check=True, capture_output=True)
        command = ["driftline", "run", "weather.csv", "--label", "rain"]
        subprocess.run([*command, "--out", "first"], cwd=folder, check=True, capture_output=True)
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        console = Console(record=True, width=88, file=tempfile.TemporaryFile("w"))
        console.print(Text(f"$ {' '.join(command)}\n{done.stderr}{done.stdout.rstrip()}"))
        drawn = console.export_svg(title="driftline run")
        drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # none from elsewhere
        (IMAGES / "run.svg").write_text(drawn)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        shot = f"--screenshot={IMAGES / 'report.png'}"
        page = (Path(folder) / "results" / "run" / "weather" / "report.html").as_uri()
        subprocess.run([browser, *options, "--window-size=900,2600", shot, page], check=True)
        service(browser, options, folder)


def service(browser: str, options: list[str], folder: str) -> None:
    """Draw the page of a service that is fed with weather, after some time."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = ["driftline", "serve", "--replay", "weather.csv", "--label", "rain"]
    command += ["--speed", "200", "--port", port]
    serving = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        time.sleep(40)
        shot = f"--screenshot={IMAGES / 'service.png'}"
        wait = ["--virtual-time-budget=6000", "--timeout=8000", f"--user-data-dir={folder}/browser"]
        page = f"http://127.0.0.1:{port}/"
        subprocess.run(
            [browser, *options, *wait, "--window-size=1000,1640", shot, page], check=True
        )
    finally:
        serving.terminate()
        serving.wait()


if __name__ == "__main__":
    main()
