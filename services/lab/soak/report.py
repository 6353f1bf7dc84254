"""report.json: everything that was measured, what it comes to, and whether it kept to the limits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from services import slo
from services.lab import history
from services.lab.intervals import slope, spread
from services.lab.machine import machine
from services.lab.soak.findings import Findings, Record
from services.lab.soak.options import Options
from services.lab.stage_shares import stage_shares
from services.slo import Slo

SCHEMA_VERSION = 1

WARM_UP = 300.0
"""Seconds in which caches, arenas and the like fill up; slopes are of what comes after."""

_MOST_POINTS = 120
"""That a slope is taken of: every pair of them counts."""

_GROWING = ("rss_mb", "threads", "descriptors", "loop_lag_ms")
"""Fields of a sample that should not grow."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """When and under what load a soak ran."""

    date: str
    """When it began, ISO 8601 in UTC."""
    load_before: Sequence[float]
    load_after: Sequence[float]
    """Of 1, 5 and 15 minutes, as `os.getloadavg` tells."""


def build(options: Options, limits: Slo, findings: Findings, circumstances: Circumstances) -> dict[str, Any]:
    """The report as JSON. Figures and verdicts are of each kind of client by itself."""
    records = findings.records
    clients = sorted({record["client"] for record in records}) or [options.client]
    of = {client: [record for record in records if record["client"] == client] for client in clients}
    verdicts = {client: [asdict(each) for each in slo.judge(limits, of[client])] for client in clients}
    return {
        "schema_version": SCHEMA_VERSION,
        "version": version("visavis"),
        **history.commit(),
        "date": circumstances.date,
        "machine": machine(),
        "load": {"before": list(circumstances.load_before), "after": list(circumstances.load_after)},
        "run": {
            "sessions": options.sessions,
            "turns": options.turns,
            "seconds": options.seconds,
            "browser": options.browser,
            "network": options.network,
            "own_server": options.url is None,
            "audio": [path.name for path in options.audio],
            "seed": options.seed,
        },
        "took_s": _took(findings),
        "stopped_by": findings.stopped_by,
        "slo": {
            "digest": limits.digest,
            "shipped": limits.shipped,
            # What nothing measured is no pass.
            "holds": all(each["holds"] is True for found in verdicts.values() for each in found),
        },
        "verdicts": verdicts,
        "figures": {client: figures(of[client]) for client in clients},
        "slopes_per_hour": slopes(findings),
        "packets": packets(findings.packets),
        "samples": [asdict(sample) for sample in findings.samples],
        "records": records,
    }


def figures(records: Sequence[Record]) -> dict[str, Any]:
    """What the turns of one kind of client come to."""
    skews = [record["av_skew_ms"] for record in records if record["av_skew_ms"] is not None]
    failures = Counter(record["failed"] for record in records if record["failed"] is not None)
    return {
        "turns": len(records),
        "failed": failures.total(),
        "failures": dict(failures),
        "premature": sum(bool(record["premature"]) for record in records),
        "interrupted": sum(bool(record["interrupted"]) for record in records),
        "time_to_first_audio_ms": spread(_known(records, "time_to_first_audio_ms")),
        "time_to_first_frame_ms": spread(_known(records, "time_to_first_frame_ms")),
        "stages_ms": stage_shares(records),
        "stages_violated": sum(bool(record["stages_violated"]) for record in records),
        "speech_gaps": _stumbles(records, "speech_gaps"),
        "render_freezes": _stumbles(records, "render_freezes"),
        "av_skew_ms": {
            "p50": spread([skew["p50"] for skew in skews]),
            "p95": spread([skew["p95"] for skew in skews]),
        },
        "clock_bound_ms": spread(_known(records, "clock_bound_ms")),
        "microphone_late_ms": spread(_known(records, "microphone_late_ms")),
    }


def slopes(findings: Findings) -> dict[str, dict[str, float]]:
    """Theil–Sen slope an hour, with its 95 % interval, of all that should not grow; none of a short soak."""
    courses = {
        name: [(each.at_s, value) for each in findings.samples if (value := getattr(each, name)) is not None]
        for name in _GROWING
    }
    courses["time_to_first_audio_ms"] = [
        (record["at_s"], record["time_to_first_audio_ms"])
        for record in findings.records
        if record["time_to_first_audio_ms"] is not None
    ]
    found = {}
    for name, course in courses.items():
        warm = _thinned(sorted(point for point in course if point[0] > WARM_UP))
        if len(warm) >= 3:
            hours, values = [at / 3600 for at, _ in warm], [value for _, value in warm]
            found[name] = slope(hours, values).rounded(3)
    return found


def packets(counted: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """By direction, what relays carried and lost; empty without a relay."""
    found: dict[str, dict[str, int]] = {}
    for (direction, fate), count in sorted(counted.items()):
        found.setdefault(direction, {})[fate] = count
    return found


def _took(findings: Findings) -> float | None:
    if findings.began is None or findings.ended is None:
        return None
    return round(findings.ended - findings.began, 1)


def _known(records: Sequence[Record], name: str) -> list[float]:
    return [value for record in records if (value := record.get(name)) is not None]


def _stumbles(records: Sequence[Record], name: str) -> dict[str, Any]:
    """Gaps or freezes: `turns` are those in which they could be seen."""
    known: list[Sequence[Mapping[str, Any]]] = [
        record[name] for record in records if record[name] is not None
    ]
    all_of_them = [each for found in known for each in found]
    return {
        "turns": len(known),
        "count": len(all_of_them),
        "longest_ms": max((each["duration_ms"] for each in all_of_them), default=None),
        "causes": dict(Counter(each["cause"] for each in all_of_them)),
    }


def _thinned(course: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Evenly, so that not more than _MOST_POINTS are left."""
    if len(course) <= _MOST_POINTS:
        return list(course)
    chosen = np.linspace(0, len(course) - 1, _MOST_POINTS).round().astype(int)
    return [course[index] for index in chosen]
