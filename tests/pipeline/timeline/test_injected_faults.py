"""Faults put into a call are found, with their size and their cause; what is no fault is not."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from pipeline.events import WIRE_RATE, Prompt, SpeechChunk, TextDelta
from tests.pipeline.observed_call import BlockableClock, ObservedCall, observed_call
from tests.pipeline.test_dialogue import WORD_SECONDS, Models, speech

FIRST, SECOND = "I am very well today.", "Thank you for asking me."

CLAUSE_SECONDS = 5 * WORD_SECONDS

TOLERANCE_MS = 20
"""A packet of sound."""


class Stalling(Models):
    """Models that let the reply run dry in its second clause, for exactly so long."""

    def __init__(
        self, clock: BlockableClock, *, voice: float | None = None, model: float | None = None, split: int = 0
    ) -> None:
        """`voice`: seconds of silence that a stalled synthesizer leaves after two words of the clause;
        `model`: that a stalled model leaves before it, `split` characters of it written before."""
        super().__init__(clock)
        self.hears = ["Hello there."] * 200
        self._voice = voice
        self._model = model
        self._split = split
        self.voice = StallingVoice(self, voice)  # type: ignore[assignment]
        self.call: ObservedCall | None = None

    async def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        yield TextDelta(f"{FIRST} {SECOND[: self._split]}", self.clock.now())
        if self._model is not None:
            await self.dry(CLAUSE_SECONDS, self._model - StallingVoice.TAKES)
        yield TextDelta(SECOND[self._split :], self.clock.now())

    async def dry(self, played: float, seconds: float) -> None:
        """Until so long after so much of the reply was played."""
        assert self.call is not None
        await self.clock.sleep_until(await self.call.begun() + played + seconds)


class StallingVoice:
    TAKES = 0.05

    def __init__(self, models: Stalling, stalls: float | None) -> None:
        self._models = models
        self._stalls = stalls

    async def stream(self, text: str) -> AsyncGenerator[SpeechChunk, None]:
        await self._models.clock.sleep_until(self._models.clock.now() + self.TAKES)
        words = text.split()
        if self._stalls is None or text == FIRST:
            yield speech(text)
            return
        yield speech(" ".join(words[:2]))
        await self._models.dry(CLAUSE_SECONDS + 2 * WORD_SECONDS, self._stalls)
        yield speech(" ".join(words[2:]))


@asynccontextmanager
async def calling(**stalls: Any) -> AsyncIterator[ObservedCall]:
    models: list[Stalling] = []

    def make(clock: BlockableClock) -> Models:
        models.append(Stalling(clock, **stalls))
        return models[0]

    async with observed_call(make) as call:
        models[0].call = call
        call.say()
        yield call


def only(found: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    (one,) = found
    return one


@pytest.mark.parametrize("seconds", [0.1, 0.35, 0.6])
async def test_a_synthesizer_that_stalls_in_mid_utterance(seconds: float) -> None:
    async with calling(voice=seconds) as call:
        gap = only((await call.turn())["speech_gaps"])
    assert gap["duration_ms"] == pytest.approx(1000 * seconds, abs=TOLERANCE_MS)
    assert gap["at_ms"] == pytest.approx(1000 * (CLAUSE_SECONDS + 2 * WORD_SECONDS), abs=TOLERANCE_MS)
    assert gap["cause"] == "tts"


@pytest.mark.parametrize(
    "split", [len("Thank "), len("Thank you for ")], ids=["between clauses", "between tokens"]
)
async def test_a_model_that_stalls(split: int) -> None:
    async with calling(model=0.5, split=split) as call:
        record = await call.turn()
    gap = only(record["speech_gaps"])
    assert gap["duration_ms"] == pytest.approx(500, abs=TOLERANCE_MS)
    assert gap["cause"] == "llm"


@pytest.mark.parametrize("seconds", [0.3, 2.0])
async def test_a_renderer_that_pauses(seconds: float) -> None:
    async with calling() as call:
        await call.until_speaking(0.4)
        call.pencil.next_takes = seconds
        record = await call.turn()
    freeze = only(record["render_freezes"])
    assert freeze["duration_ms"] == pytest.approx(1000 * seconds + 40, abs=20), "it was due a picture later"
    assert (freeze["cause"], freeze["w3c"]) == ("render", True)
    assert record["speech_gaps"] == []


async def test_a_loop_that_is_blocked() -> None:
    async with calling() as call:
        await call.until_speaking(0.4)
        call.clock.block(0.2)
        record = await call.turn()
    gap = only(record["speech_gaps"])
    assert gap["duration_ms"] == pytest.approx(200, abs=TOLERANCE_MS)
    assert gap["cause"] == "loop"
    freeze = only(record["render_freezes"])
    assert (freeze["duration_ms"], freeze["cause"]) == (pytest.approx(200, abs=40), "loop")


@pytest.mark.parametrize(("part", "cause"), [("arrives", "network"), ("leaves", "encode")])
async def test_packets_that_come_late(part: str, cause: str) -> None:
    async with calling() as call:
        await call.until_speaking(0.4)
        for wire in call.wires.values():
            setattr(wire, part, getattr(wire, part) + 0.2)
        record = await call.turn()
    gap, freeze = only(record["speech_gaps"]), only(record["render_freezes"])
    assert gap["duration_ms"] == pytest.approx(200, abs=TOLERANCE_MS)
    assert freeze["duration_ms"] == pytest.approx(240, abs=40)
    assert (gap["cause"], freeze["cause"]) == (cause, cause)


async def test_a_page_in_the_background_is_not_painted() -> None:
    async with calling() as call:
        await call.until_speaking(0.2)
        call.hidden = call.wires["video"].dead = True
        await call.run(0.9)
        call.hidden = call.wires["video"].dead = False
        record = await call.turn()
    freeze = only(record["render_freezes"])
    assert freeze["duration_ms"] == pytest.approx(940, abs=40)
    assert freeze["cause"] == "paint"
    assert record["speech_gaps"] == []


async def test_a_freeze_that_is_open_at_hang_up() -> None:
    async with calling() as call:
        await call.until_speaking(0.6)
        call.wires["video"].dead = True
        await call.run(0.7)
        call.call.dialogue.close()
        call.timeline.close()
        (record,) = call.records
    assert record["failed"] == "disconnected"
    freeze = only(record["render_freezes"])
    assert freeze["duration_ms"] == pytest.approx(700, abs=60)
    assert freeze["w3c"]


async def test_pauses_of_the_voice_are_no_gaps() -> None:
    rng = np.random.default_rng(1)

    class Breathing(Stalling):
        """Speaks with silences between its words."""

        def __init__(self, clock: BlockableClock) -> None:
            super().__init__(clock)
            self.voice = self  # type: ignore[assignment]

        async def stream(self, prompt: Any) -> AsyncGenerator[Any, None]:
            if isinstance(prompt, Prompt):
                yield TextDelta(f"{FIRST} {SECOND}", self.clock.now())
                return
            chunk = speech(prompt)
            start = int(rng.integers(0, len(chunk.pcm) - WIRE_RATE // 2))
            chunk.pcm[start : start + WIRE_RATE // 2] = 0
            yield chunk

    async with observed_call(Breathing) as call:
        records = []
        for _ in range(20):
            call.say()
            records.append(await call.turn())
    assert [record["speech_gaps"] for record in records] == [[]] * 20
    assert [record["render_freezes"] for record in records] == [[]] * 20
    assert [record["stages_violated"] for record in records] == [[]] * 20


@pytest.mark.parametrize("part", ["leaves", "arrives"], ids=["before emission", "after it"])
async def test_sound_that_is_late_is_skew(part: str) -> None:
    async with calling() as call:
        usual = (await call.turn())["av_skew_ms"]
        setattr(call.wires["audio"], part, getattr(call.wires["audio"], part) + 0.1)
        await call.run(0.5)
        call.say()
        late = (await call.turn())["av_skew_ms"]
    assert late["p50"] - usual["p50"] == pytest.approx(100, abs=10)
    assert late["p95"] - usual["p95"] == pytest.approx(100, abs=10)
