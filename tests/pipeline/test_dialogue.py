"""Whole turns in virtual time: everything real but the models."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from pipeline.asr.ear import Ear
from pipeline.clock import VirtualClock
from pipeline.dialogue import Dialogue
from pipeline.errors import LanguageModelError, SynthesisError, TranscriptionError
from pipeline.events import (
    WIRE_RATE,
    Hearing,
    Image,
    Message,
    Mood,
    Pcm,
    Pose,
    Prompt,
    Samples,
    SpeechChunk,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    Stage,
    TextDelta,
    Timeline,
    Transcript,
    TurnTrace,
    Utterance,
    Word,
)
from pipeline.stages import Conduct, Lines, Stages
from pipeline.webrtc.announcer import Announcer
from pipeline.webrtc.playout import FRAME, FRAME_SECONDS
from tests.unobserved import Unobserved

WORD_SECONDS = 0.2


def speech(text: str) -> SpeechChunk:
    words = text.split()
    times = [(i * WORD_SECONDS, (i + 1) * WORD_SECONDS) for i in range(len(words))]
    return SpeechChunk(
        text,
        np.full(round(len(words) * WORD_SECONDS * WIRE_RATE), 1000, np.int16),
        WIRE_RATE,
        (),
        tuple(Word(word, start, end) for word, (start, end) in zip(words, times, strict=True)),
    )


class Models:
    """Stands for all three models; what goes wrong is set by the test."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.hears = ["Hello there."]
        self.says = ["I am well. ", "Thank you for asking me today."]
        self.cut_after: int | None = None
        self.deaf = self.dumb = False
        self.voice = Voice(self)
        self.complete: float | None = 0.99
        """How likely the sentence ends after what was said."""
        self.prompts: list[list[Message]] = []
        self.reads = 0
        self.warmed: list[str] = []
        self.streams_closed = 0

    async def transcribe(self, samples: Samples) -> Transcript:
        await self.clock.sleep_until(self.clock.now() + 0.1)
        if self.deaf:
            raise TranscriptionError("the recogniser broke")
        return Transcript(self.hears.pop(0))

    async def opening(self, history: Sequence[Message]) -> Prompt:
        return Prompt((), (), f"opening of {len(history)}", 80)

    async def warm(self, prompt: Prompt) -> None:
        self.warmed.append(prompt.digest)

    async def write(self, history: Sequence[Message], turn: str) -> Prompt:
        return Prompt((*history,), (), "digest", 80)

    async def read(self, prompt: Prompt) -> float | None:
        self.reads += 1
        return self.complete

    async def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        self.prompts.append([*prompt.messages])
        try:
            for index, text in enumerate(self.says):
                if index == self.cut_after:
                    raise LanguageModelError("the engine died")
                await self.clock.sleep_until(self.clock.now() + 0.1)
                yield TextDelta(text, self.clock.now())
        finally:
            self.streams_closed += 1


class Voice:
    """Breaks when the models are dumb."""

    def __init__(self, models: Models) -> None:
        self._models = models

    async def stream(self, text: str) -> AsyncGenerator[SpeechChunk, None]:
        if self._models.dumb:
            raise SynthesisError("the voice broke")
        await self._models.clock.sleep_until(self._models.clock.now() + 0.05)
        yield speech(text)


class Portrait:
    """Face and performer that only note when the mouth is told to close."""

    width = height = 16

    def __init__(self) -> None:
        self.cued: list[str] = []

    def draw(self, pose: Pose) -> Image:
        return np.zeros((16, 16, 3), np.uint8)

    def cue(self, chunk: SpeechChunk, at: float) -> None:
        self.cued.append(chunk.text)

    def clear(self) -> None:
        self.cued.clear()

    def pose(self, now: float, position: float | None, mood: Mood) -> Pose:
        return Pose()


class SilentEar(Ear):
    """An ear whose events the test makes itself."""

    def __init__(self) -> None:
        self.closed = self.forgotten = 0
        self.patience: list[float] = []

    def played(self, pcm: Pcm) -> None:
        pass

    def judged(self, patience: float) -> list[Hearing]:
        self.patience.append(patience)
        return []

    def close_utterance(self) -> None:
        self.closed += 1

    def forget(self) -> None:
        self.forgotten += 1


class Call:
    """A dialogue under way, and what the user is told of it."""

    def __init__(
        self,
        clock: VirtualClock,
        models: Models,
        scope: asyncio.TaskGroup,
        executor: Any,
        conduct: Conduct | None,
        filler: SpeechChunk | None,
        timeline: Timeline,
    ) -> None:
        self.clock = clock
        self._pts = 0
        self.models = models
        self.portrait = Portrait()
        self.sent: list[Mapping[str, Any]] = []
        self.timeline = timeline
        self.ear = SilentEar()
        stages = Stages(
            ear=self.ear,
            transcriber=models,
            prompts=models,
            language_model=models,
            synthesizer=models.voice,
            performer=self.portrait,
            face=self.portrait,
            render_executor=executor,
            lines=Lines(
                apology=speech("Sorry about that."),
                not_understood=speech("Pardon me?"),
                greeting=speech("Welcome."),
                filler=filler,
            ),
            conduct=conduct or Conduct(),
        )
        self.announcer = Announcer(lambda text: self.sent.append(json.loads(text)), "Vis", "0")
        self.dialogue = Dialogue(
            "s1", stages, clock, self.announcer, self.timeline, scope, rtp_origin=lambda: None
        )

    @property
    def turns(self) -> list[TurnTrace]:
        """Those that are over."""
        assert isinstance(self.timeline, Unobserved)
        return self.timeline.turns

    def speak(self, *, pause: bool = True, end: bool = True) -> None:
        now = self.clock.now()
        self.dialogue.heard(SpeechOnset(now))
        if pause:
            self.pause()
        if end:
            self.dialogue.heard(SpeechEnd(now))

    def pause(self) -> None:
        now = self.clock.now()
        self.dialogue.heard(SpeechPause(now, Utterance(np.zeros(100, np.float32), now - 1, now)))

    async def play(self, seconds: float) -> None:
        """Let time pass, the audio track taking its frames."""
        for _ in range(round(seconds / FRAME_SECONDS)):
            self.dialogue.delivery.playout.next_frame()
            self._pts += FRAME
            self.dialogue.delivery.position.sent(
                self._pts, self.dialogue.delivery.playout.span, self.clock.now()
            )
            await self.clock.advance(FRAME_SECONDS)

    def kinds(self, *wanted: str) -> list[str]:
        return [m["type"] for m in self.sent if m["type"] in wanted]

    def texts(self, kind: str) -> list[str]:
        return [m["data"]["text"] for m in self.sent if m["type"] == kind]


@asynccontextmanager
async def calling(conduct: Conduct | None = None, filler: SpeechChunk | None = None) -> AsyncIterator[Call]:
    clock = VirtualClock(10.0)
    with ThreadPoolExecutor(1) as executor:
        async with asyncio.TaskGroup() as scope:
            call = Call(clock, Models(clock), scope, executor, conduct, filler, Unobserved())
            yield call
            call.dialogue.close()
    assert len(asyncio.all_tasks()) == 1, "a task outlived its session"


async def test_a_turn_from_words_to_silence() -> None:
    async with calling() as call:
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.user_text == "Hello there."
        assert turn.reply_text == "I am well. Thank you for asking me today."
        assert turn.heard_text == "I am well. Thank you for asking me today."
        assert (turn.interrupted, turn.failed, turn.committed_revision) == (False, None, 1)
        assert call.texts("bot-tts-text") == turn.heard_text.split()
        assert "".join(call.texts("bot-llm-text")) == turn.reply_text
        assert call.kinds("bot-started-speaking", "bot-stopped-speaking", "bot-llm-started") == [
            "bot-llm-started",
            "bot-started-speaking",
            "bot-stopped-speaking",
        ]
        assert call.portrait.cued == []
        assert call.dialogue.mood() is Mood.IDLE
        assert call.models.warmed == ["opening of 2"], "the next turn finds its history read"


async def test_the_moods_of_a_turn() -> None:
    async with calling() as call:
        call.speak(pause=False, end=False)
        assert call.dialogue.mood() is Mood.LISTENING
        call.pause()
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        assert call.dialogue.mood() is Mood.THINKING
        await call.play(1)
        assert call.dialogue.mood() is Mood.SPEAKING


async def test_nothing_is_heard_before_the_commit_and_the_reply_is_ready_at_it() -> None:
    async with calling() as call:
        call.speak(end=False)
        await call.play(2)
        assert call.kinds("bot-started-speaking", "bot-llm-text") == []
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(2 * FRAME_SECONDS)
        assert call.kinds("bot-started-speaking") == ["bot-started-speaking"]


async def test_going_on_drops_what_was_prepared() -> None:
    async with calling() as call:
        call.models.hears = ["What is", "What is the time?"]
        call.speak(end=False)
        await call.play(1)
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.user_text == "What is the time?"
        assert turn.committed_revision == 2
        assert call.models.prompts[-1] == [], "the dropped text is not history"


async def test_history_holds_one_message_each_and_only_what_was_heard() -> None:
    async with calling() as call:
        call.models.hears = ["First.", "Second.", "Third."]
        call.speak()
        await call.play(1.6)
        call.speak()  # over the reply
        await call.play(4)
        call.speak()
        await call.play(1)
        first, second = call.turns
        assert first.interrupted
        assert first.heard_text
        assert len(first.heard_text) < len(first.reply_text)
        assert first.reply_text.startswith(first.heard_text)
        assert [(m.role, m.text) for m in call.models.prompts[-1]] == [
            ("user", "First."),
            ("assistant", first.heard_text),
            ("user", "Second."),
            ("assistant", second.heard_text),
        ]


async def test_a_cough_gives_the_reply_back_without_losing_a_word() -> None:
    async with calling() as call:
        call.models.hears = ["Hello.", ""]
        call.speak()
        await call.play(1.0)
        call.speak(pause=False, end=False)
        await call.play(0.5)
        call.pause()
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(5)
        (turn,) = call.turns
        assert not turn.interrupted
        assert turn.heard_text == turn.reply_text


async def test_ten_interruptions_in_a_row() -> None:
    async with calling() as call:
        call.models.hears = [f"Question {n}." for n in range(11)]
        for _ in range(11):
            call.speak()
            await call.play(0.9)
        await call.play(5)
        assert len(call.turns) == 11
        assert [turn.interrupted for turn in call.turns] == [True] * 10 + [False]
        assert call.models.streams_closed == len(call.models.prompts)


async def test_an_engine_that_dies_in_mid_reply_is_apologised_for_and_the_next_turn_works() -> None:
    async with calling() as call:
        call.models.hears = ["First.", "Second."]
        call.models.cut_after = 1
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.failed == "llm_failed"
        assert turn.first_sound_at is not None
        assert call.texts("bot-tts-text")[-3:] == ["Sorry", "about", "that."]
        assert "Sorry" not in (turn.heard_text or "")
        assert call.kinds("error") == ["error"]
        call.models.cut_after = None
        call.speak()
        await call.play(4)
        assert call.turns[-1].failed is None


@pytest.mark.parametrize(
    ("fault", "code"), [("deaf", "asr_failed"), ("dumb", "tts_failed"), ("mute", "reply_empty")]
)
async def test_no_turn_ends_in_silence(fault: str, code: str) -> None:
    async with calling() as call:
        if fault == "mute":
            call.models.says = ["🙂 "]
        else:
            setattr(call.models, fault, True)
        call.speak()
        await call.play(3)
        (turn,) = call.turns
        assert turn.failed == code
        assert turn.first_audio_at is None
        assert call.texts("bot-tts-text") == ["Sorry", "about", "that."]


async def test_a_failure_nobody_waits_for_is_not_apologised_for() -> None:
    async with calling() as call:
        call.models.hears = ["What", "What now?"]
        call.models.cut_after = 0
        call.speak(end=False)
        await call.play(1)
        call.models.cut_after = None
        call.speak()
        await call.play(4)
        assert [turn.failed for turn in call.turns] == [None]
        assert call.kinds("error") == []


async def test_typed_text_is_a_turn() -> None:
    async with calling() as call:
        call.dialogue.typed("How are you?")
        await call.play(4)
        (turn,) = call.turns
        assert (turn.input, turn.user_text, turn.failed) == ("text", "How are you?", None)
        assert turn.heard_text == turn.reply_text


async def test_a_cough_long_before_a_text_is_no_part_of_its_turn() -> None:
    async with calling() as call:
        call.models.hears = [""]
        call.speak()
        await call.play(30)
        call.dialogue.typed("How are you?")
        await call.play(4)
        spans = [span for span in call.turns[-1].spans if span.stage is Stage.ENDPOINTING]
        assert all(span.end >= span.start for span in spans)


async def test_text_takes_the_place_of_a_reply() -> None:
    async with calling() as call:
        call.speak()
        await call.play(1)
        call.dialogue.typed("Stop, something else.")
        await call.play(4)
        assert [turn.interrupted for turn in call.turns] == [True, False]


@pytest.mark.parametrize("when", ["speaking", "paused", "ended"])
async def test_text_takes_the_place_of_speech(when: str) -> None:
    async with calling() as call:
        call.speak(pause=when != "speaking", end=when == "ended")
        call.dialogue.typed("Never mind.")
        await call.play(4)
        assert [turn.user_text for turn in call.turns] == ["Never mind."]
        assert not call.turns[0].interrupted
        assert call.ear.forgotten == 1


@pytest.mark.parametrize("interrupt", ["speech", "text"])
async def test_an_interruption_in_the_very_pass_in_which_a_clause_is_ready(interrupt: str) -> None:
    async with calling() as call:
        voiced: asyncio.Future[SpeechChunk] = asyncio.get_running_loop().create_future()

        async def stream(text: str) -> AsyncGenerator[SpeechChunk, None]:
            yield await voiced

        call.models.voice.stream = stream  # type: ignore[method-assign]
        call.speak(end=False)
        await call.play(1)
        voiced.set_result(speech("Too late."))
        if interrupt == "text":
            call.dialogue.typed("Something else.")
        else:
            call.dialogue.heard(SpeechOnset(call.clock.now()))
        await call.play(0.5)
        assert "Too late." not in call.texts("bot-tts-text") or interrupt == "text"


@pytest.mark.parametrize("passes", range(6))
async def test_an_engine_that_fails_in_the_very_pass_of_an_interruption(passes: int) -> None:
    async with calling() as call:
        failing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def stream(prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
            await failing
            yield TextDelta("never", 0.0)

        works = call.models.stream
        call.models.stream = stream  # type: ignore[method-assign]
        call.speak()
        await call.play(0.5)
        call.models.stream = works  # type: ignore[method-assign]
        failing.set_exception(LanguageModelError("the engine died"))
        for _ in range(passes):
            await asyncio.sleep(0)
        call.dialogue.typed("Still there?")
        await call.play(5)
        assert len(call.turns) == 2
        assert len({turn.turn_id for turn in call.turns}) == 2
        assert call.turns[-1].failed is None


async def test_what_waited_for_room_in_an_interrupted_reply_is_not_in_the_next_one() -> None:
    async with calling() as call:
        call.models.says = [f"This is the sentence number {n} of a long story. " for n in range(12)]
        call.models.hears = ["Tell me a story.", "Stop."]
        call.speak()
        await call.play(3)
        call.models.says = ["Fine."]
        told = len(call.sent)
        call.speak()
        await call.play(4)
        later = call.sent[told:]
        begins = next(i for i, m in enumerate(later) if m["type"] == "bot-llm-started")
        spoken = {m["data"]["text"] for m in later[begins:] if m["type"] == "bot-output"}
        assert spoken == {"Fine."}


async def test_dropped_work_is_counted_and_its_spans_are_kept() -> None:
    async with calling() as call:
        call.models.hears = ["What is", "What is the time?"]
        call.speak(end=False)
        await call.play(1)
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.cancels == 1
        assert {span.revision for span in turn.spans} == {1, 2}


async def test_the_client_is_told_of_speech_and_of_the_state_it_joins() -> None:
    async with calling() as call:
        call.announcer.ready("x")
        assert [m["data"].get("user") for m in call.sent if m["type"] == "server-message"] == ["silent"]
        call.speak()
        await call.play(1)
        assert call.kinds("user-started-speaking", "user-stopped-speaking") == [
            "user-started-speaking",
            "user-stopped-speaking",
        ]


async def test_hanging_up_does_not_wait_for_an_engine_that_warms_slowly() -> None:
    async with calling() as call:

        async def warm(prompt: Prompt) -> None:
            await asyncio.get_running_loop().create_future()

        call.models.warm = warm  # type: ignore[method-assign]
        call.dialogue.open()
        await call.play(0.1)
        call.dialogue.close()
        call.dialogue.close()


async def test_the_greeting_is_no_turn_and_can_be_interrupted() -> None:
    async with calling() as call:
        call.dialogue.open()
        call.dialogue.open()
        await call.play(1.4)
        assert call.models.warmed == ["opening of 0"]
        assert call.texts("bot-tts-text") == ["Welcome."]
        assert call.turns == []
        call.speak()
        await call.play(4)
        assert len(call.turns) == 1


async def test_who_comes_with_a_question_is_not_greeted() -> None:
    async with calling() as call:
        call.dialogue.open()
        call.dialogue.typed("What time is it?")
        await call.play(4)
        assert "Welcome." not in call.texts("bot-tts-text")
        assert len(call.turns) == 1


async def test_hanging_up_in_mid_reply_leaves_a_record() -> None:
    async with calling() as call:
        call.speak()
        await call.play(1)
    (turn,) = call.turns
    assert turn.failed == "disconnected"
    assert turn.heard_text is not None
