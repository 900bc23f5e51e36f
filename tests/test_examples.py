"""Every example runs, from a clean process."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted([*ROOT.glob("*.py"), *(ROOT / "gallery").glob("*.py")])


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    text = path.read_text()
    for package in ("river", "torch"):
        if f"import {package}" in text or f"from {package}" in text:
            if find_spec(package) is None:
                pytest.skip(f"{package} is not installed")
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
