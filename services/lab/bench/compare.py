"""Two runs that were kept, one over the other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from pipeline.errors import BadInputError
from services.lab import history
from services.lab.bench import tables
from services.lab.intervals import ratio

Comparison = tuple[str, int, int, float, float, float]
"""What, n of each run, ratio of medians, and its interval."""


def compare(path: Path, a: str, b: str, benchmark: str | None, console: Console) -> None:
    """Print ratios of medians, A over B, of everything that both measured. Raises BadInputError."""
    ours, theirs = history.newest(path, a, benchmark), history.newest(path, b, benchmark)
    shared = [name for name in ours if name in theirs]
    if not shared:
        raise BadInputError(f"{a} has {', '.join(ours)}; {b} has {', '.join(theirs)}: nothing to compare")
    for name in shared:
        console.print(
            tables.plain(
                f"{name}: {_about(ours[name])} over {_about(theirs[name])}",
                ("median of", "n", "n", "ratio", "95 % low", "high"),
                list(ratios(ours[name], theirs[name])),
            )
        )
        for note in _differences(ours[name], theirs[name]):
            console.print(note, markup=False)


def ratios(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Comparison]:
    """For each list of values that two runs share: sizes, ratio of medians, bootstrap interval."""
    found: list[Comparison] = []
    for name, values in a["values"].items():
        others = b["values"].get(name)
        if values and others:
            each = ratio(values, others)
            found.append((name, len(values), len(others), each.value, each.low, each.high))
    return found


def _about(run: Mapping[str, Any]) -> str:
    return f"{run['commit'] or 'no commit'}{' (changed)' if run['dirty'] else ''} of {run['date'][:16]}"


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """What makes a comparison doubtful."""
    found = []
    if a["machine"]["cpu"] != b["machine"]["cpu"] or a["machine"]["cores"] != b["machine"]["cores"]:
        found.append("not on the same machine")
    if a["settings"]["overrides"] != b["settings"]["overrides"]:
        found.append(f"other settings: {a['settings']['overrides']}, {b['settings']['overrides']}")
    if max(a["load"]["before"][0], b["load"]["before"][0]) > 1:
        found.append(f"the machine was busy: load {a['load']['before'][0]:.1f}, {b['load']['before'][0]:.1f}")
    found += [f"a run of {run['date'][:16]} is not complete" for run in (a, b) if not run["complete"]]
    return found
