"""bench/history.jsonl: one line for every run that was kept, never rewritten."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import BadInputError

CHECKOUT = Path(__file__).parents[2]
"""Where this code lies; a checkout when it is not installed as a package."""

DEFAULT = (CHECKOUT if (CHECKOUT / "bench").is_dir() else Path()) / "bench" / "history.jsonl"
"""The checkout's; of an installed package, one in the current directory."""


def commit() -> dict[str, Any]:
    """The commit and whether the tree differs from it; nulls outside a checkout."""
    head = _git("rev-parse", "--short=12", "HEAD")
    changes = _git("status", "--porcelain", "--", ".", ":!bench/history.jsonl")
    return {"commit": head or None, "dirty": None if head is None else bool(changes)}


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Add a run. Raises BadInputError when the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    except OSError as error:
        raise BadInputError(f"{path}: the run cannot be added ({error.strerror})") from error


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Every run, oldest first. Raises BadInputError."""
    if not path.is_file():
        raise BadInputError(f"{path}: there is no such file; run a benchmark first")
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise BadInputError(f"{path}, line {number}: is not JSON") from error


def newest(path: Path, wanted: str, benchmark: str | None) -> dict[str, dict[str, Any]]:
    """The newest run of each benchmark at a commit (its first digits), or, `latest`, at any.

    Raises BadInputError when there is none.
    """
    found = {
        run["benchmark"]: run
        for run in read(path)
        if (wanted == "latest" or (run["commit"] or "").startswith(wanted))
        and benchmark in (None, run["benchmark"])
    }
    if not found:
        raise BadInputError(f"{path}: has no run of {benchmark or 'any benchmark'} at {wanted}")
    return found


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
