"""Stages as seen by a tape: each question goes through a `Way`, which records it or answers it.

Ear, face and performer are not asked: they do what they are told.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, TypeVar

from pipeline.clock import Clock
from pipeline.events import (
    LanguageModel,
    Message,
    Prompt,
    PromptWriter,
    Role,
    Samples,
    SpeechChunk,
    Synthesizer,
    TextDelta,
    Transcriber,
    Transcript,
    TurnEndDetector,
)
from pipeline.headroom import Headroom
from pipeline.tape import values
from pipeline.tape.entries import Asked
from pipeline.tape.values import Form, Question

T = TypeVar("T")


class Way(Protocol):
    """Of a question to the stage that is asked, which is None where there is none."""

    def stream(
        self, question: Question, form: Form[T], stage: Callable[[], AsyncGenerator[T, None]] | None
    ) -> AsyncGenerator[T, None]:
        """The answer, piece by piece. Raises StageError."""
        ...

    def free(self, headroom: Headroom | None) -> bool: ...


async def _one(way: Way, question: Question, form: Form[T], stage: Callable[[], Awaitable[T]] | None) -> T:
    """An answer that comes as a whole."""

    async def whole() -> AsyncGenerator[T, None]:
        assert stage is not None
        yield await stage()

    async with aclosing(way.stream(question, form, None if stage is None else whole)) as pieces:
        (answer,) = [piece async for piece in pieces]
        return answer


class TapedTranscriber:
    def __init__(self, way: Way, transcriber: Transcriber | None) -> None:
        self._way = way
        self._stage = transcriber

    async def transcribe(self, samples: Samples) -> Transcript:
        question, stage = values.of_sound(Asked.TRANSCRIBER, samples), self._stage
        ask = None if stage is None else lambda: stage.transcribe(samples)
        return await _one(self._way, question, values.TRANSCRIPT, ask)


class TapedTurnEnd:
    def __init__(self, way: Way, detector: TurnEndDetector | None) -> None:
        self._way = way
        self._stage = detector

    async def finished(self, samples: Samples) -> float:
        question, stage = values.of_sound(Asked.TURN_END, samples), self._stage
        ask = None if stage is None else lambda: stage.finished(samples)
        return await _one(self._way, question, values.NUMBER, ask)


class TapedPrompts:
    def __init__(self, way: Way, prompts: PromptWriter | None) -> None:
        self._way = way
        self._stage = prompts

    async def opening(self, history: Sequence[Message]) -> Prompt:
        """Not on the tape: it is for warming, for which nobody waits."""
        return Prompt((), (), "", 0) if self._stage is None else await self._stage.opening(history)

    async def write(self, history: Sequence[Message], turn: str) -> Prompt:
        stage, form = self._stage, values.prompt_form((*history, Message(Role.USER, turn)))
        ask = None if stage is None else lambda: stage.write(history, turn)
        return await _one(self._way, values.of_turn(history, turn), form, ask)


class TapedLanguageModel:
    def __init__(self, way: Way, model: LanguageModel | None, clock: Clock) -> None:
        self._way = way
        self._stage = model
        self._clock = clock

    async def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        question, stage = values.of_prompt(Asked.REPLY, prompt), self._stage
        ask = None if stage is None else lambda: stage.stream(prompt)
        async with aclosing(self._way.stream(question, values.DELTA, ask)) as deltas:
            async for delta in deltas:
                yield replace(delta, at=self._clock.now())

    async def warm(self, prompt: Prompt) -> None:
        if self._stage is not None:
            await self._stage.warm(prompt)

    async def read(self, prompt: Prompt) -> float | None:
        question, stage = values.of_prompt(Asked.READING, prompt), self._stage
        ask = None if stage is None else lambda: stage.read(prompt)
        return await _one(self._way, question, values.PERHAPS_NUMBER, ask)


class TapedSynthesizer:
    def __init__(self, way: Way, synthesizer: Synthesizer | None) -> None:
        self._way = way
        self._stage = synthesizer

    async def stream(self, text: str) -> AsyncGenerator[SpeechChunk, None]:
        stage = self._stage
        ask = None if stage is None else lambda: stage.stream(text)
        async with aclosing(self._way.stream(values.of_clause(text), values.CHUNK, ask)) as pieces:
            async for piece in pieces:
                yield piece


class TapedHeadroom(Headroom):
    def __init__(self, way: Way, headroom: Headroom | None) -> None:
        super().__init__()
        self._way = way
        self._shared = headroom

    def note(self, session_id: str, *, busy: bool) -> None:
        if self._shared is not None:
            self._shared.note(session_id, busy=busy)

    @property
    def free(self) -> bool:
        return self._way.free(self._shared)

    def wanted_elsewhere(self, session_id: str) -> bool:
        """Not taped: it only decides how often the face is drawn."""
        return self._shared is not None and self._shared.wanted_elsewhere(session_id)
