"""The page's logic without a browser: runs unit/*.test.mjs under `node --test`."""

import subprocess
from pathlib import Path

UNITS = Path(__file__).parent / "unit"


def test_units(node: str) -> None:
    files = sorted(str(path) for path in UNITS.glob("*.test.mjs"))
    assert files
    run = subprocess.run([node, "--test", *files], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
