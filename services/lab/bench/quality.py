"""`latency`, `cutoffs` and `talk-quality`: how soon the agent answers, and whether it lets callers finish.

The two belong together: waiting less answers sooner and cuts more people off. `talk-quality` takes both
from one shuffled run; the other two are its halves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from services.lab import cut, exchange
from services.lab.bench import tables
from services.lab.bench.sitting import Benchmark, Row, Server, Sitting, Summary
from services.lab.exchange import Exchange
from services.lab.intervals import slope, spread
from services.lab.stage_shares import stage_shares
from services.lab.studio.speech import Spoken
from services.lab.synthetic_user import calling

LONGEST_GAP = 1.2
"""Seconds between an answer and the next question, at most: nobody speaks by the clock."""

_MEASURED = {
    "time to first audio, ms": "time_to_first_audio_ms",
    "queue, ms": "queue_ms",
    "server memory, MB": "rss_mb",
    "server threads": "threads",
    "server descriptors": "descriptors",
}
"""What may grow → its key in a turn's record or beside it."""

_WARM_UP = 300.0
"""Seconds of a call in which caches, arenas and the like fill up to their size."""


def benchmark(name: str, questions: int, pauses: int) -> Benchmark:
    """A run of so many plain utterances and so many with an inner pause, shuffled."""

    async def measure(sitting: Sitting) -> None:
        async with sitting.studio() as studio:
            spoken = await studio.questions(questions) if questions else []
            spoken += await studio.with_pauses(pauses) if pauses else []
        order = sitting.rng().permutation(len(spoken))
        async with sitting.server() as server:
            await converse(sitting, server, [spoken[k] for k in order], {})

    return Benchmark(name, measure, summarise)


async def converse(
    sitting: Sitting, server: Server, spoken: Sequence[Spoken], marks: Mapping[str, Any]
) -> None:
    """One call in which everything is said in turn; a row for each, with `marks`. Raises CallError."""
    rng = sitting.rng()
    async with calling(server.url, sitting.clock) as user:
        await exchange.until_settled(user, sitting.clock)
        for number, each in enumerate(spoken, 1):
            pause = float(rng.uniform(0, LONGEST_GAP))
            await sitting.clock.sleep_until(sitting.clock.now() + pause)
            done = await exchange.ask(user, each, sitting.clock)
            now = sitting.clock.now()
            row = {**marks, **row_of(done, user.microphone.late, now), **used(server, now)}
            sitting.rows.append(row)
            sitting.say(f"[{number}/{len(spoken)}] {told(row)}")


def row_of(done: Exchange, microphone_late: float, now: float) -> Row:
    """What is kept of an exchange: what was said, how it was judged, and the turn's record.

    `microphone_late`: seconds by which the caller's sound went out late, at worst, in the call so far.
    """
    reasons = cut.reasons(done, done.heard)
    record = exchange.joined(done, own=not reasons, now=now)
    pause = done.spoken.pause
    return {
        "said": done.spoken.text,
        "kind": done.spoken.kind,
        "voice": done.spoken.voice,
        "pause_ms": None if pause is None else pause.ms,
        "pause_inside": None if pause is None else pause.inside,
        "pause_after": None if pause is None else " ".join(pause.before),
        "cut": reasons,
        "turns": len(done.records),
        "microphone_late_ms": round(microphone_late * 1000, 1),
        "record": record,
    }


def used(server: Server, now: float) -> dict[str, Any]:
    """What the server holds at the end of a turn; nulls where it cannot be seen."""
    usage = server.processes.usage(now)
    return {
        "at_s": now,
        "rss_mb": usage and usage.rss_mb,
        "threads": usage and usage.threads,
        "descriptors": usage and usage.descriptors,
    }


def told(row: Row) -> str:
    """A row as one line of progress."""
    record = row["record"]
    waited = record["time_to_first_audio_ms"]
    outcome = f"{waited:.0f} ms" if waited is not None else "; ".join(row["cut"]) or record["failed"] or "–"
    pause = f", pause {row['pause_ms']:.0f} ms" if row["pause_ms"] else ""
    return f"{row['said']}{pause}: {outcome}"


def waits(rows: Sequence[Row]) -> list[float]:
    """Times to first audio of the turns that have one."""
    found = [row["record"]["time_to_first_audio_ms"] for row in rows]
    return [wait for wait in found if wait is not None]


def summarise(sitting: Sitting) -> Summary:
    """Latency and, where there were pauses, cut-offs."""
    rows = sitting.rows
    groups = {"time to first audio": rows}
    groups |= {f"  {kind}": [row for row in rows if row["kind"] == kind] for kind in ("synthetic", "human")}
    if any(row["pause_ms"] for row in rows) and any(not row["pause_ms"] for row in rows):
        groups["  without inner pause"] = [row for row in rows if row["pause_ms"] is None]
        groups["  with inner pause"] = [row for row in rows if row["pause_ms"] is not None]
    latency = {name.strip(): spread(waits(group)) for name, group in groups.items() if group}
    shares = stage_shares([row["record"] for row in rows])
    rates = cut.rates(rows)
    shown = [
        tables.spreads("time to first audio, playout model of 40 ms included", latency),
        tables.spreads("stages: shares of it", shares),
    ]
    shown += [tables.cut_rates(rates)] if rates else []
    slopes = growth(rows)
    shown += [shown_growth(rows, slopes)] if slopes else []
    premature = [row for row in rows if row["cut"]]
    failed = [row for row in rows if row["record"]["failed"] is not None]
    remarks = [f"cut: {row['said']!r} ({'; '.join(row['cut'])})" for row in premature]
    remarks += [f"failed: {row['said']!r} ({row['record']['failed']})" for row in failed]
    late = spread([row["microphone_late_ms"] for row in rows])
    remarks.append(f"utterances {len(rows)}, cut or premature {len(premature)}, failed {len(failed)}")
    remarks += [f"the caller's microphone was late by p90 {late['p90']} ms"] if rows else []
    results = {
        "time_to_first_audio_ms": latency,
        "stages_ms": shares,
        "cutoffs": rates,
        "premature": len(premature),
        "failed": len(failed),
        "microphone_late_ms": late,
        "slopes_per_turn": slopes,
    }
    return Summary(results, {"time_to_first_audio_ms": waits(rows)}, shown, remarks)


def growth(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Theil–Sen slope over the turns after the warm-up of each quantity that may grow."""
    times = [row["at_s"] for row in rows if "at_s" in row]
    warm = [row for row in rows if times and row.get("at_s", 0.0) > times[0] + _WARM_UP]
    slopes = {}
    for name, key in _MEASURED.items():
        points = [(k, y) for k, row in enumerate(warm) if (y := _value(row, key)) is not None]
        if len(points) >= 3:
            slopes[name] = slope(*zip(*points, strict=True)).rounded(4)
    return slopes


def shown_growth(rows: Sequence[Row], slopes: Mapping[str, Mapping[str, float]]) -> Table:
    """The slopes as a table."""
    title = f"slopes over {len(rows)} turns, without the first {_WARM_UP / 60:g} minutes"
    columns = ("per turn", "slope", "95 % low", "high")
    return tables.plain(title, columns, [(name, *found.values()) for name, found in slopes.items()])


def _value(row: Row, key: str) -> float | None:
    value: float | None = row["record"][key] if key in row["record"] else row[key]
    return value
