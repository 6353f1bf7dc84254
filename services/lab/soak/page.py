"""report.html: report.json for people. One file that asks for nothing else and runs no script."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from services.lab.soak import figures
from services.lab.soak.figures import TimeAxis
from services.lab.soak.table import table

Report = Mapping[str, Any]

_MOST_LISTED = 200
"""Turns in a table; report.json has all."""

_COUNTED = ("turns", "failed", "premature", "interrupted", "stages_violated")

VERDICTS = {True: ("holds", "good"), False: ("broken", "bad"), None: ("not measured", "bad")}
"""In words, and the class they are shown with. What nothing measured is no pass."""


def render(report: Report) -> str:
    """The whole page."""
    style = (resources.files("services.lab.soak") / "page.css").read_text("utf-8")
    sections = [
        _head(report),
        _section("Limits", _limits(report)),
        *(
            _section(f"What {client} users got", _client(report, client, found))
            for client, found in report["figures"].items()
        ),
        _section("The server", _server(report)),
        _section("Turns to look at", _turns(report)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Soak of {escape(report['date'][:16])}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}</section>\n"


def _head(report: Report) -> str:
    run, machine = report["run"], report["machine"]
    holds, stopped = report["slo"]["holds"], report["stopped_by"]
    sentence = "Every limit holds." if holds else "Not every limit holds."
    if stopped is not None:
        sentence += f" The run was ended early, by {stopped}."
    length = f"{run['turns']} turns each" if run["turns"] is not None else f"{run['seconds']:g} s"
    before, after = report["load"]["before"], report["load"]["after"]
    took = "" if report["took_s"] is None else f"; it took {report['took_s']:g} s"
    facts = {
        "Users": f"{run['sessions']}, {'Chromium' if run['browser'] else 'aiortc'}, {length}{took}",
        "Began": report["date"],
        "Network": run["network"] or "as it is",
        "Server": "started for this run" if run["own_server"] else "one that ran already",
        "Machine": "{cpu}, {cores} cores, {memory_gb:g} GB, {system}, Python {python}".format(**machine),
        "Load of a minute": f"{before[0]:.2f} before, {after[0]:.2f} after",
        "Version": f"{report['version']}{_commit(report)}",
        "Seed": str(run["seed"]),
    }
    described = "".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in facts.items())
    kind = "good" if holds and stopped is None else "bad"
    return f'<h1>Soak</h1>\n<p class="verdict {kind}">{escape(sentence)}</p>\n<dl>{described}</dl>\n'


def _commit(report: Report) -> str:
    if report["commit"] is None:
        return ""
    return f", commit {report['commit']}{' and changes' if report['dirty'] else ''}"


def _limits(report: Report) -> str:
    digest = report["slo"]["digest"][:16]
    shipped = "the file" if report["slo"]["shipped"] else "<strong>not the file</strong>"
    parts = [f"<p>slo.yaml {escape(digest)}…, {shipped} that Visavis ships with.</p>\n"]
    for client, verdicts in report["verdicts"].items():
        rows = [
            (each["name"], f"{each['bound']} {each['limit']:g}", each["value"], VERDICTS[each["holds"]])
            for each in verdicts
        ]
        parts.append(table(f"{client} users", ("limit", "wanted", "measured", "verdict"), rows, text=(0, 3)))
    return "".join(parts)


def _client(report: Report, client: str, found: Mapping[str, Any]) -> str:
    records = [record for record in report["records"] if record["client"] == client]
    limits = {each["name"]: each["limit"] for each in report["verdicts"][client]}
    time = TimeAxis(report["took_s"] or 0.0)
    counts = [(name.replace("_", " "), found[name]) for name in _COUNTED]
    return "".join(
        [
            table("turns", ("of them", "n"), counts),
            _spreads(found),
            figures.first_audio(records, limits),
            figures.waterfalls(records),
            figures.stumbles(records, limits, time),
            _causes(found),
            figures.skew(records, limits, time),
        ]
    )


def _spreads(found: Mapping[str, Any]) -> str:
    spreads = {
        "time to first audio": found["time_to_first_audio_ms"],
        **{f"  of it, {stage}": spread for stage, spread in found["stages_ms"].items()},
        "time to first frame": found["time_to_first_frame_ms"],
        "skew, median of a turn": found["av_skew_ms"]["p50"],
        "skew, 95th percentile of a turn": found["av_skew_ms"]["p95"],
        "bound of the tie of clocks": found["clock_bound_ms"],
        "the caller's own lateness": found["microphone_late_ms"],
    }
    columns = ("n", "median", "p90", "p95", "min", "max")
    rows = [(name, *(spread.get(column) for column in columns)) for name, spread in spreads.items()]
    return table("milliseconds", ("quantity", *columns), rows)


def _causes(found: Mapping[str, Any]) -> str:
    rows = []
    for kind, name in (("speech gaps", "speech_gaps"), ("freezes and stalls", "render_freezes")):
        each = found[name]
        rows.append((kind, each["turns"], each["count"], each["longest_ms"], _told(each["causes"])))
    columns = ("kind", "turns seen", "count", "longest, ms", "causes")
    return table("stumbles and their causes", columns, rows, text=(0, 4))


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "–"


def _server(report: Report) -> str:
    slopes = [
        (name, each["value"], each["low"], each["high"]) for name, each in report["slopes_per_hour"].items()
    ]
    told = '<p class="note">Too short for slopes: they are of what comes after the first 5 minutes.</p>\n'
    if slopes:
        columns = ("quantity", "slope", "low", "high")
        told = table("slopes an hour after the first 5 minutes, 95 % interval", columns, slopes)
    counts = [(direction, each["carried"], each["lost"]) for direction, each in report["packets"].items()]
    packets = table("packets through relays", ("direction", "carried", "lost"), counts) if counts else ""
    plots = figures.resources(report["samples"], TimeAxis(report["took_s"] or 0.0))
    return plots + told + packets


def _turns(report: Report) -> str:
    odd = [each for each in report["records"] if _oddities(each)]
    if not odd:
        return "<p>No turn failed, was premature or had a gap or a freeze.</p>\n"
    rows = [
        (
            f"{each['at_s']:.1f}",
            f"{each['client']} {each['user']}",
            each["said"],
            each["time_to_first_audio_ms"],
            "; ".join(_oddities(each)),
        )
        for each in odd[:_MOST_LISTED]
    ]
    columns = ("at, s", "user", "said", "first audio, ms", "what")
    more = f", the first {_MOST_LISTED}" if len(odd) > _MOST_LISTED else ""
    found = table(f"{len(odd)} of {len(report['records'])} turns{more}", columns, rows, text=(1, 2, 4))
    return f"<details open><summary>Failed, premature, or with a stumble</summary>\n{found}</details>\n"


def _oddities(record: Mapping[str, Any]) -> Sequence[str]:
    """What is not as it should be about a turn, in words."""
    found = []
    if record["failed"] is not None:
        found.append(f"failed: {record['failed']}" + (f" ({record['error']})" if record["error"] else ""))
    if record["premature"]:
        found.append("premature")
    for each in record["speech_gaps"] or ():
        found.append(f"gap {each['duration_ms']:.0f} ms, {each['cause']}")
    for each in record["render_freezes"] or ():
        kind = "freeze" if each["w3c"] else "stall"
        found.append(f"{kind} {each['duration_ms']:.0f} ms, {each['cause']}")
    if record["stages_violated"]:
        found.append("stages violated")
    return found
