"""`techniques`: what each technique buys, by switching them off one at a time."""

from collections.abc import Sequence

from pipeline.errors import ConfigError
from services.config import load
from services.lab.bench import quality, tables
from services.lab.bench.sitting import Benchmark, Sitting, Summary
from services.lab.intervals import difference, spread

SWITCHED_OFF: dict[str, dict[str, object]] = {
    "short window": {"asr.short_window.max_speech_s": 0},
    "speculation": {"turn_taking.speculation.enabled": False},
    "speculation while speaking": {"turn_taking.speculation.partials_ms": 0},
    "turn detector": {"turn_taking.smart_turn": False},
    "warm prefix": {"llm.warm": False},
    "first clause": {"tts.first_clause": False},
}
"""Technique → the settings that switch it off."""

ALL_ON = "everything on"


def benchmark(turns: int, wanted: Sequence[str]) -> Benchmark:
    """The same questions, to a new server each time: everything on, each technique off, everything on."""

    async def measure(sitting: Sitting) -> None:
        async with sitting.studio() as studio:
            spoken = await studio.questions(turns)
        arms: list[tuple[str, dict[str, object]]] = [(ALL_ON, {})]
        for name in wanted or SWITCHED_OFF:
            try:
                load(sitting.options.config, {**sitting.options.overrides, **SWITCHED_OFF[name]})
            except ConfigError:
                sitting.notes.append(f"{name}: this version has no setting for it; left out")
            else:
                arms.append((f"{name} off", SWITCHED_OFF[name]))
        # Half of the baseline comes last, so that a machine that slows down shows in it.
        for label, overrides in [*arms, (ALL_ON, {})]:
            sitting.say(f"── {label}")
            order = sitting.rng().permutation(len(spoken))
            async with sitting.server(label, overrides) as server:
                await quality.converse(sitting, server, [spoken[k] for k in order], {"arm": label})

    return Benchmark("techniques", measure, summarise, own_server=True)


def summarise(sitting: Sitting) -> Summary:
    """Each arm's wait, and how much longer it is than with everything on."""
    arms = list(dict.fromkeys(row["arm"] for row in sitting.rows))
    waits = {arm: quality.waits([row for row in sitting.rows if row["arm"] == arm]) for arm in arms}
    cost = {
        arm: difference(waits[arm], waits[ALL_ON]).rounded(1)
        for arm in arms
        if arm != ALL_ON and waits[arm] and waits[ALL_ON]
    }
    spreads = {arm: spread(each) for arm, each in waits.items()}
    shown = [
        tables.spreads("time to first audio", spreads),
        tables.plain(
            "difference of medians to everything on",
            ("switched off", "ms", "95 % low", "high"),
            [(arm, *found.values()) for arm, found in cost.items()],
        ),
    ]
    results = {"time_to_first_audio_ms": spreads, "difference_of_medians_ms": cost}
    values = {f"time_to_first_audio_ms, {arm}": each for arm, each in waits.items()}
    return Summary(results, values, shown)
