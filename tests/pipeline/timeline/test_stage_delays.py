"""Where a delay goes: each stage made 100 ms slower in turn, in virtual time, as its client measures it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from pipeline.clock import VirtualClock
from pipeline.events import (
    WIRE_RATE,
    ClientObservation,
    ClockStamps,
    Message,
    Prompt,
    Samples,
    SpeechChunk,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    TextDelta,
    Transcript,
    Utterance,
)
from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.session_timeline import SessionTimeline
from pipeline.webrtc.playout import FRAME, FRAME_SECONDS
from tests.pipeline.test_dialogue import Call, Models, speech

DELAY = 0.1

ORIGIN = 4_294_900_000

STAGES = ("uplink", "endpointing", "asr", "route", "prefill", "first_clause", "tts", "egress", "playout")

HIDDEN = ("asr", "route", "prefill", "first_clause", "tts")
"""What is done while it is still waited whether the user goes on."""


@dataclass(frozen=True)
class Delays:
    """Seconds that each stage takes."""

    uplink: float = 0.03
    endpointing: float = 0.064
    asr: float = 0.1
    route: float = 0.02
    prefill: float = 0.09
    first_clause: float = 0.08
    tts: float = 0.06
    egress: float = 0.005
    playout: float = 0.09


class Slow(Models):
    """Models that take as long as they are told to."""

    def __init__(self, clock: VirtualClock, delays: Delays) -> None:
        super().__init__(clock)
        self._delays = delays
        self.voice = SlowVoice(self, delays)

    async def transcribe(self, samples: Samples) -> Transcript:
        await self.wait(self._delays.asr)
        return Transcript("Hello there.")

    async def write(self, history: Sequence[Message], turn: str) -> Prompt:
        await self.wait(self._delays.route)
        return await super().write(history, turn)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        await self.wait(self._delays.prefill)
        yield TextDelta("I am", self.clock.now())
        await self.wait(self._delays.first_clause)
        yield TextDelta(" well. Thank you for asking.", self.clock.now())

    async def wait(self, seconds: float) -> None:
        await self.clock.sleep_until(self.clock.now() + seconds)


class SlowVoice:
    def __init__(self, models: Slow, delays: Delays) -> None:
        self._models = models
        self._delays = delays

    async def stream(self, text: str) -> AsyncGenerator[SpeechChunk, None]:
        await self._models.wait(self._delays.tts)
        yield speech(text)


async def measured(delays: Delays) -> Mapping[str, Any]:
    """The record of one turn with these."""
    clock = VirtualClock(10.0)
    records: list[Mapping[str, Any]] = []
    timeline = SessionTimeline(clock, {}, LoopLag(clock), records.append)
    timeline.connected(lambda kind: ORIGIN)
    timeline.stamped(ClockStamps(10.0, 10.0, 10.0, 10.0))
    with ThreadPoolExecutor(1) as executor:
        async with asyncio.TaskGroup() as scope:
            call = Call(clock, Slow(clock, delays), scope, executor, None, None, timeline)  # type: ignore[arg-type]
            talking = scope.create_task(_say(call, delays))
            await _play(call, scope, delays, 3.0)
            await talking
            call.dialogue.close()
            timeline.close()
    (record,) = records
    return record


async def _say(call: Call, delays: Delays) -> None:
    """The user's speech ends at once, by their own clock; the server hears of it later."""
    clock = call.clock
    call.timeline.speech_ended(clock.now())
    began, ended = clock.now() - 1, clock.now() + delays.uplink
    await clock.sleep_until(ended)
    call.dialogue.heard(SpeechOnset(began))
    call.dialogue.heard(SpeechPause(clock.now(), Utterance(np.zeros(100, np.float32), began, ended)))
    await clock.sleep_until(ended + delays.endpointing)
    call.dialogue.heard(SpeechEnd(clock.now()))


async def _play(call: Call, scope: asyncio.TaskGroup, delays: Delays, seconds: float) -> None:
    """20 ms frames that leave `egress` after they were made and are heard `playout` after that."""
    clock, delivery = call.clock, call.dialogue.delivery

    async def deliver(stamp: int, made: float) -> None:
        await clock.sleep_until(made + delays.egress)
        call.timeline.packet_sent("audio", stamp)
        call.timeline.observed(ClientObservation(sound=((stamp, clock.now() + delays.playout),)))

    for pts in range(0, round(seconds * WIRE_RATE), FRAME):
        delivery.playout.next_frame()
        call.timeline.voice_made(pts, delivery.playing, delivery.playout.span)
        scope.create_task(deliver((pts + ORIGIN) % 2**32, clock.now()))
        await clock.advance(FRAME_SECONDS)
    await clock.advance(delays.egress)


def shares(record: Mapping[str, Any]) -> dict[str, float]:
    found = record["stages"]["shares_ms"]
    assert record["stages_violated"] == []
    assert sum(share or 0.0 for share in found.values()) == pytest.approx(
        record["time_to_first_audio_ms"], abs=0.6
    )
    return {stage: found[stage] for stage in STAGES}


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_that_everything_waits_for_shows_its_delay(stage: str) -> None:
    # The end of a turn is waited for while the reply is prepared: only beyond that does it count.
    usual = Delays(endpointing=0.9) if stage == "endpointing" else Delays()
    slower = replace(usual, **{stage: getattr(usual, stage) + DELAY})
    before, after = shares(await measured(usual)), shares(await measured(slower))
    assert (after[stage] - before[stage]) == pytest.approx(1000 * DELAY, abs=15)
    others = sum(abs(after[other] - before[other]) for other in STAGES if other != stage)
    assert others <= 1000 * FRAME_SECONDS, "but for the 20 ms that sound waits for its packet"


@pytest.mark.parametrize("stage", HIDDEN)
async def test_a_stage_that_speculation_hides_shows_nothing(stage: str) -> None:
    usual = Delays(endpointing=0.9)
    slower = replace(usual, **{stage: getattr(usual, stage) + DELAY})
    before, after = await measured(usual), await measured(slower)
    assert shares(after)[stage] == shares(before)[stage] == 0
    assert after["time_to_first_audio_ms"] == before["time_to_first_audio_ms"]


async def test_what_cannot_be_is_told() -> None:
    delays = Delays()
    record = await measured(replace(delays, playout=-0.2))
    assert record["stages_violated"], "heard before it was sent"


def test_the_reply_is_all_audible() -> None:
    assert np.abs(speech("well").pcm).min() / 32768 > 10 ** (-50 / 20)
    assert len(speech("well").pcm) == 0.2 * WIRE_RATE
