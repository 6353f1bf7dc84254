"""`endurance`: one long call; does anything grow?"""

import math

from services.lab import exchange
from services.lab.bench import quality, tables
from services.lab.bench.sitting import Benchmark, Sitting, Summary
from services.lab.intervals import spread
from services.lab.synthetic_user import calling

QUESTIONS_A_MINUTE = 12
"""More than fit into a minute, so that no recording is played twice."""


def benchmark(minutes: float) -> Benchmark:
    """A call of so many minutes."""

    async def measure(sitting: Sitting) -> None:
        async with sitting.studio() as studio:
            spoken = await studio.questions(math.ceil(minutes * QUESTIONS_A_MINUTE))
        rng, clock = sitting.rng(), sitting.clock
        async with sitting.server() as server, calling(server.url, clock) as user:
            await exchange.until_settled(user, clock)
            end = clock.now() + minutes * 60
            for each in spoken:
                await clock.sleep_until(clock.now() + float(rng.uniform(0, quality.LONGEST_GAP)))
                if clock.now() >= end:
                    break
                done = await exchange.ask(user, each, clock)
                now = clock.now()
                row = {**quality.row_of(done, user.microphone.late, now), **quality.used(server, now)}
                sitting.rows.append(row)
                sitting.say(f"[{(end - now) / 60:.1f} min left] {quality.told(row)}")

    return Benchmark("endurance", measure, summarise)


def summarise(sitting: Sitting) -> Summary:
    """Each quantity's Theil–Sen slope over the turns."""
    waits = quality.waits(sitting.rows)
    slopes = quality.growth(sitting.rows)
    results = {
        "time_to_first_audio_ms": spread(waits),
        "slopes_per_turn": slopes,
        "failed": sum(row["record"]["failed"] is not None for row in sitting.rows),
    }
    shown = [
        tables.spreads("time to first audio", {"all turns": spread(waits)}),
        quality.shown_growth(sitting.rows, slopes),
    ]
    remarks = [
        f"{name}: rises ({found['low']:g} to {found['high']:g} a turn)"
        for name, found in slopes.items()
        if found["low"] > 0
    ]
    return Summary(
        results, {"time_to_first_audio_ms": waits}, shown, remarks or (["nothing rises"] if slopes else [])
    )
