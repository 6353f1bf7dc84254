"""`observing`: what it costs a server that a client tells it what it plays and shows.

What the timeline does without a client's word is not in it: that cannot be switched off, and
tests/pipeline/timeline/test_cost.py takes it by itself.
"""

from services.lab import exchange
from services.lab.bench import tables
from services.lab.bench.sitting import Benchmark, Sitting, Summary
from services.lab.intervals import difference, spread
from services.lab.machine import shares
from services.lab.synthetic_user import calling

TOLD, SILENT = "told", "not told"

STRETCH = 15.0
"""Seconds over which the processor's use is taken."""

_SETTLE = 1.0
"""Seconds after a change, for what is still under way."""


def benchmark(pairs: int) -> Benchmark:
    """One call in which nobody speaks; its client tells and does not tell, in turns."""

    async def measure(sitting: Sitting) -> None:
        clock = sitting.clock
        async with sitting.server() as server, calling(server.url, clock) as user:
            await exchange.until_settled(user, clock)
            for number in range(pairs):
                # Sides take turns to begin, so that a machine that slows down shows in neither.
                for arm in (TOLD, SILENT) if number % 2 else (SILENT, TOLD):
                    user.telling = arm == TOLD
                    await clock.sleep_until(clock.now() + _SETTLE)
                    first = server.processes.usage(clock.now())
                    await clock.sleep_until(clock.now() + STRETCH)
                    used = shares(first, server.processes.usage(clock.now()))
                    sitting.rows.append({"arm": arm, **used})
                    sitting.say(f"[{number + 1}/{pairs}] {arm}: {used['server_cores']} cores")

    return Benchmark("observing", measure, summarise)


def summarise(sitting: Sitting) -> Summary:
    """Of a core, with and without, and the difference of medians."""
    cores = {
        arm: [row["server_cores"] for row in sitting.rows if row["arm"] == arm and row["server_cores"]]
        for arm in (TOLD, SILENT)
    }
    if not all(cores.values()):
        return Summary({"cores": None}, {}, remarks=["the server's use of the processor cannot be seen"])
    percent = {arm: [100 * share for share in each] for arm, each in cores.items()}
    spreads = {arm: spread(each) for arm, each in percent.items()}
    cost = difference(percent[TOLD], percent[SILENT]).rounded(2)
    shown = [
        tables.spreads("the server's use of the processor", spreads, "% of a core"),
        tables.plain(
            "difference of medians", ("", "% of a core", "95 % low", "high"), [("reports", *cost.values())]
        ),
    ]
    return Summary({"cost_percent_of_a_core": cost}, percent, shown)
