"""`sessions`: what more callers cost each of them, and whether anything stutters.

Callers are in one process, apart from the server's. Each talks, then is silent for a time drawn from an
exponential distribution, so that it is in a turn for about 30 % of the time; then all ask at once.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pipeline.errors import VisavisError
from services.lab import exchange
from services.lab.bench import continuity, quality, tables
from services.lab.bench.sitting import Benchmark, Row, Server, Sitting, Summary
from services.lab.exchange import Exchange
from services.lab.heard_sound import HeardSound
from services.lab.intervals import ratio, spread
from services.lab.studio.speech import Spoken
from services.lab.synthetic_user import SyntheticUser, calling

DUTY = 0.3
"""Share of the time that a caller is in a turn: asking, waiting or being answered."""

_FIRST_TURN = 7.0
"""Seconds; what a turn is expected to take before one was seen."""

_LONGEST_SILENCE = 90.0

_PICTURES_BEFORE = 3.0
"""Seconds of pictures before a turn that its freezes are judged against."""


def benchmark(callers: int, alone: int, each: int, rounds: int) -> Benchmark:
    """`alone` turns of one caller, `each` of several at once, and `rounds` in which they ask together."""

    async def measure(sitting: Sitting) -> None:
        try:
            await arms(sitting)
        except* VisavisError as errors:
            # One caller's trouble ends the run of all; what it was is told as of any benchmark.
            raise errors.exceptions[0] from None

    async def arms(sitting: Sitting) -> None:
        async with sitting.studio() as studio:
            spoken = await studio.questions(alone + callers * (each + rounds))
        parts = _dealt(spoken, [alone] + [each] * callers + [rounds] * callers)
        async with sitting.server("1 caller") as server:
            await _at_random(sitting, server, "1 caller", parts[:1])
        async with sitting.server(f"{callers} callers") as server:
            await _at_random(sitting, server, f"{callers} callers", parts[1 : callers + 1])
        if rounds:
            async with sitting.server(f"{callers} at once") as server:
                await _together(sitting, server, f"{callers} at once", parts[callers + 1 :])

    return Benchmark("sessions", measure, summarise, {"server.max_sessions": max(4, callers)})


def _dealt(spoken: Sequence[Spoken], counts: Sequence[int]) -> list[list[Spoken]]:
    bounds = np.cumsum([0, *counts])
    return [list(spoken[a:b]) for a, b in pairwise(bounds)]


async def _at_random(sitting: Sitting, server: Server, label: str, parts: Sequence[Sequence[Spoken]]) -> None:
    keeper = _Keeper(sitting, server, label)
    try:
        async with asyncio.TaskGroup() as callers:
            for number, spoken in enumerate(parts):
                callers.create_task(_caller(keeper, number, spoken, sitting.rng()))
    finally:
        keeper.look()


@dataclass(frozen=True, slots=True)
class _Taken:
    """A turn as it was, not looked at yet."""

    caller: int
    done: Exchange
    pictures: Sequence[tuple[float, int]]
    microphone_late: float
    at: float
    used: dict[str, Any]


class _Keeper:
    """Keeps turns while callers talk and looks at them afterwards: that takes tens of milliseconds each of
    the loop which all microphones and ears run on."""

    def __init__(self, sitting: Sitting, server: Server, arm: str) -> None:
        self.sitting = sitting
        self.server = server
        self._arm = arm
        self._taken: list[_Taken] = []

    def keep(self, caller: int, done: Exchange, user: SyntheticUser) -> None:
        now = self.sitting.clock.now()
        used = quality.used(self.server, now)
        taken = _Taken(caller, done, user.pictures.seen, user.microphone.late, now, used)
        self._taken.append(taken)
        self.sitting.say(f"{self._arm}, caller {caller}: {done.spoken.text}")

    def look(self) -> None:
        """The rows of all that was kept."""
        for taken in self._taken:
            row: Row = {"arm": self._arm, "caller": taken.caller}
            row |= quality.row_of(taken.done, taken.microphone_late, taken.at)
            row |= {**taken.used, **holes(taken.done, taken.pictures, taken.at)}
            self.sitting.rows.append(row)
            self.sitting.say(f"{self._arm}, caller {taken.caller}: {quality.told(row)}")


async def _caller(keeper: _Keeper, number: int, spoken: Sequence[Spoken], rng: np.random.Generator) -> None:
    clock, taken = keeper.sitting.clock, [_FIRST_TURN]
    async with calling(keeper.server.url, clock) as user:
        await exchange.until_settled(user, clock)
        for each in spoken:
            await clock.sleep_until(clock.now() + silence(taken, rng))
            began = clock.now()
            done = await exchange.ask(user, each, clock)
            taken.append(clock.now() - began)
            keeper.keep(number, done, user)


def silence(taken: Sequence[float], rng: np.random.Generator) -> float:
    """Seconds until a caller's next turn, exponential, so that turns that took so long fill DUTY."""
    mean = float(np.mean(taken)) * (1 - DUTY) / DUTY
    return min(float(rng.exponential(mean)), _LONGEST_SILENCE)


async def _together(sitting: Sitting, server: Server, label: str, parts: Sequence[Sequence[Spoken]]) -> None:
    """All callers speak at the same moment, once in each round."""
    meeting, keeper = asyncio.Barrier(len(parts)), _Keeper(sitting, server, label)

    async def caller(number: int, spoken: Sequence[Spoken]) -> None:
        async with calling(server.url, sitting.clock) as user:
            await exchange.until_settled(user, sitting.clock)
            for each in spoken:
                await meeting.wait()
                keeper.keep(number, await exchange.ask(user, each, sitting.clock), user)

    try:
        async with asyncio.TaskGroup() as callers:
            for number, spoken in enumerate(parts):
                callers.create_task(caller(number, spoken))
    finally:
        keeper.look()


def holes(done: Exchange, pictures: Sequence[tuple[float, int]], now: float) -> dict[str, Any]:
    """Lengths in ms of the reply's speech gaps and of freezes since the question began; `pictures` of the
    call: when they came, and their RTP time stamps."""
    assert done.utterance.onset is not None
    assert done.utterance.end is not None
    sound = HeardSound(done.heard, done.utterance.end, now)
    runs = sound.runs()
    gaps = (
        continuity.underruns(done.heard, sound.arrival(runs[0].start), sound.arrival(runs[-1].end - 1))
        if runs
        else []
    )
    # They go on coming: what was not shown when the turn was over is another's.
    seen = [at for at, _ in pictures if done.utterance.onset - _PICTURES_BEFORE < at <= now]
    frozen = [hole for hole in continuity.freezes(seen, now) if hole.at >= done.utterance.onset]
    told = done.records[-1]["speech_gaps"] if done.answered else None
    return {
        "speech_gaps_ms": [hole.ms for hole in gaps],
        "speech_gaps_told": told,
        "freezes_ms": [hole.ms for hole in frozen],
    }


def summarise(sitting: Sitting) -> Summary:
    """Medians of each arm, their ratio to one caller's, and everything that stuttered."""
    arms = list(dict.fromkeys(row["arm"] for row in sitting.rows))
    rows = {arm: [row for row in sitting.rows if row["arm"] == arm] for arm in arms}
    waits = {arm: quality.waits(each) for arm, each in rows.items()}
    ratios = {
        arm: ratio(waits[arm], waits[arms[0]]).rounded(3) for arm in arms[1:] if waits[arm] and waits[arms[0]]
    }
    stutters: dict[str, dict[str, Any]] = {
        arm: {
            "turns": len(each),
            "speech_gaps": sum(len(row["speech_gaps_ms"]) for row in each),
            "longest_gap_ms": max((gap for row in each for gap in row["speech_gaps_ms"]), default=0.0),
            "speech_gaps_told": _told_gaps(each),
            "freezes": sum(len(row["freezes_ms"]) for row in each),
            "microphone_late_ms": max((row["microphone_late_ms"] for row in each), default=None),
            "premature": sum(bool(row["cut"]) for row in each),
            "failed": sum(row["record"]["failed"] is not None for row in each),
        }
        for arm, each in rows.items()
    }
    spreads = {arm: spread(each) for arm, each in waits.items()}
    results = {"time_to_first_audio_ms": spreads, "ratio_of_medians": ratios, "continuity": stutters}
    columns = (
        "callers",
        "turns",
        "speech gaps",
        "longest, ms",
        "told",
        "freezes",
        "mic late",
        "premature",
        "failed",
    )
    shown = [
        tables.spreads("time to first audio, playout model of 40 ms included", spreads),
        tables.plain(
            "continuity: gaps as heard through a 40 ms buffer; told by the server",
            columns,
            [
                (arm, *(found | {"speech_gaps_told": _by_cause(found["speech_gaps_told"])}).values())
                for arm, found in stutters.items()
            ],
        ),
    ]
    remarks = [
        f"{arm}: median {found['value']:.3f} times that of {arms[0]} ({found['low']:.3f}–{found['high']:.3f})"
        for arm, found in ratios.items()
    ]
    values = {f"time_to_first_audio_ms, {arm}": each for arm, each in waits.items()}
    return Summary(results, values, shown, remarks)


def _told_gaps(rows: Sequence[Row]) -> dict[str, int] | None:
    """Cause → speech gaps in the server's own records; None when it does not record them."""
    told = [row["speech_gaps_told"] for row in rows if row["speech_gaps_told"] is not None]
    return dict(Counter(gap["cause"] for gaps in told for gap in gaps)) if told else None


def _by_cause(gaps: Mapping[str, int] | None) -> str:
    return "–" if gaps is None else ", ".join(f"{cause} {count}" for cause, count in gaps.items()) or "none"
