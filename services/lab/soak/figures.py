"""The plots of a soak's report, made of its records and samples. One without data is a sentence instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

import numpy as np

from pipeline.events import Stage
from services.lab.plots.charts import Point, courses, histogram, scatter
from services.lab.plots.waterfall import Bar, waterfall
from services.lab.soak.table import scrolling

Record = Mapping[str, Any]

_SHORT = 300.0
"""Seconds of a run up to which its time is told in seconds."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The x axis of what happened when, in a run that took so many seconds."""

    took: float

    @property
    def label(self) -> str:
        return "seconds" if self.took <= _SHORT else "minutes"

    def at(self, seconds: float) -> float:
        return seconds if self.took <= _SHORT else seconds / 60


def first_audio(records: Sequence[Record], limits: Mapping[str, float]) -> str:
    """The distribution of time to first audio."""
    waits = [record["time_to_first_audio_ms"] for record in _answered(records)]
    if not waits:
        return _nothing("Time to first audio", "no turn has one")
    median, p90 = np.percentile(waits, (50, 90))
    marks = {"median": float(median), "p90": float(p90)}
    limit = limits.get("time_to_first_audio_p90_ms")
    return _figure(histogram("Time to first audio", waits, "ms from the user's speech end", marks, limit))


def waterfalls(records: Sequence[Record]) -> str:
    """What the wait was made of, in the median turn and in the worst."""
    known = sorted(_answered(records), key=lambda record: record["time_to_first_audio_ms"])
    staged = [record for record in known if record["stages"] is not None]
    if not staged:
        return _nothing("What the wait was made of", "no turn tells its stages")
    chosen = {"The median turn": staged[(len(staged) - 1) // 2], "The worst turn": staged[-1]}
    return "".join(_figure(_waterfall(title, record)) for title, record in chosen.items())


def _waterfall(title: str, record: Record) -> str:
    shares = record["stages"]["shares_ms"]
    bars, reached = [], 0.0
    for stage in Stage:
        spans = [each for each in record["stages"]["spans"] if each["stage"] == stage]
        ran = [(each["start_ms"], each["end_ms"]) for each in spans]
        share = shares.get(stage)
        if share is None and not ran:
            continue
        waited = None if share is None else (reached, reached + share)
        reached += share or 0.0
        bars.append(Bar(stage.value, ran, waited))
    total = record["time_to_first_audio_ms"]
    named = f"{title}: “{record['said']}”, {total:.0f} ms"
    return waterfall(named, bars, total, "ms from the user's speech end; thick: what was waited for")


def stumbles(records: Sequence[Record], limits: Mapping[str, float], time: TimeAxis) -> str:
    """Speech gaps and freezes, when and how long."""
    series = {
        "speech gap": _stumbles(records, "speech_gaps", time),
        "freeze": _stumbles(records, "render_freezes", time, w3c=True),
        "stall": _stumbles(records, "render_freezes", time, w3c=False),
    }
    if all(record["speech_gaps"] is None and record["render_freezes"] is None for record in records):
        return _nothing("Speech gaps and freezes", "no client reported what it heard and saw")
    if not any(series.values()):
        return _nothing("Speech gaps and freezes", "there was none")
    wanted = {"limit of speech gaps": limits["largest_speech_gap_ms"]}
    return _scatter("Speech gaps and freezes", series, "duration, ms", wanted, time)


def _stumbles(
    records: Sequence[Record], name: str, time: TimeAxis, *, w3c: bool | None = None
) -> list[Point]:
    return [
        Point(
            # Stumbles are told from the reply's first audible sample, turns by the end of their question.
            time.at(record["at_s"] + ((record["time_to_first_sound_ms"] or 0.0) + each["at_ms"]) / 1000),
            each["duration_ms"],
            f"user {record['user']}, {record['said']}: {each['duration_ms']:.0f} ms, {each['cause']}",
        )
        for record in records
        for each in record[name] or ()
        if w3c is None or each["w3c"] is w3c
    ]


def skew(records: Sequence[Record], limits: Mapping[str, float], time: TimeAxis) -> str:
    """How much later each turn was heard than seen."""
    known = [record for record in records if record["av_skew_ms"] is not None]
    if not known:
        return _nothing("Skew of sound and picture", "no turn has one")
    series = {
        name: [_skew(record, key, time) for record in known]
        for name, key in (("median of a turn", "p50"), ("95th percentile", "p95"))
    }
    wanted = {"lowest": limits["skew_low_ms"], "highest": limits["skew_high_ms"]}
    return _scatter("Skew of sound and picture", series, "ms; + is sound late", wanted, time)


def _skew(record: Record, key: str, time: TimeAxis) -> Point:
    value = record["av_skew_ms"][key]
    return Point(time.at(record["at_s"]), value, f"{record['said']}: {value:g} ms")


def _scatter(
    title: str,
    series: Mapping[str, Sequence[Point]],
    unit: str,
    limits: Mapping[str, float],
    time: TimeAxis,
) -> str:
    return _figure(scatter(title, series, time.label, unit, limits, span=(0.0, time.at(time.took))))


def resources(samples: Sequence[Mapping[str, Any]], time: TimeAxis) -> str:
    """Memory, threads and descriptors, and loop lag over time."""
    plots = {
        "Memory of the server": ({"memory": "rss_mb"}, "MB"),
        "Threads and descriptors": ({"threads": "threads", "descriptors": "descriptors"}, "count"),
        "Cores used": ({"server": "server_cores", "callers": "client_cores"}, "cores"),
        "Loop lag, worst of two seconds": ({"server": "loop_lag_ms", "callers": "client_loop_lag_ms"}, "ms"),
    }
    return "".join(_course(title, fields, unit, samples, time) for title, (fields, unit) in plots.items())


def _course(
    title: str, fields: Mapping[str, str], unit: str, samples: Sequence[Mapping[str, Any]], time: TimeAxis
) -> str:
    series = {
        name: [Point(time.at(each["at_s"]), each[key]) for each in samples if each[key] is not None]
        for name, key in fields.items()
    }
    known = {name: points for name, points in series.items() if points}
    if not known:
        return _nothing(title, "it could not be seen")
    return _figure(courses(title, known, time.label, unit))


def _answered(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record["time_to_first_audio_ms"] is not None]


def _figure(plot: str) -> str:
    title = plot.split("<title>", 1)[1].split("</title>", 1)[0]
    return f"<h3>{title}</h3>\n{scrolling(unescape(title), plot)}"


def _nothing(title: str, why: str) -> str:
    return f'<h3>{title}</h3>\n<p class="note">{why[0].upper()}{why[1:]}.</p>\n'
