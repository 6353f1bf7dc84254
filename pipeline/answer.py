"""One revision's answer: a prompt → text deltas → clauses → speech in a `Reply`.

Everything here may turn out to be for nothing: until its revision is committed an answer is filled in
silence, and cancelling the task that composes it undoes all of it, down to the engine's stream.
"""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from pipeline.audible import audible_runs
from pipeline.clock import Clock
from pipeline.errors import EmptyReplyError, StageError
from pipeline.events import (
    WIRE_RATE,
    LanguageModel,
    Prompt,
    Span,
    SpeechChunk,
    Stage,
    Synthesizer,
    TextDelta,
    TurnTrace,
)
from pipeline.tts.clauses import ClauseCutter
from pipeline.tts.normalise import SpeakableText
from pipeline.webrtc.reply import Reply

_CLAUSES_AHEAD = 4
"""Clauses that may wait for the synthesizer; reading the model's stream waits when there are more."""


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    at: float
    """When it was written."""


class AnswerListener(Protocol):
    """Told what a committed answer consists of, from its beginning."""

    def answer_text(self, delta: str) -> None: ...

    def answer_clause(self, text: str, at: float) -> None: ...

    def answer_chunk(self, chunk: SpeechChunk, at: float) -> None: ...

    def answer_composed(self) -> None: ...


class Answer:
    """Filled by `compose`, heard once it is `commit`ted."""

    def __init__(
        self, revision: int, trace: TurnTrace, clock: Clock, cutter: ClauseCutter, *, is_turn: bool = True
    ) -> None:
        """`is_turn` False: something the agent says of its own accord."""
        self.revision = revision
        self.is_turn = is_turn
        self.trace = trace
        self.reply = Reply()
        self.wanted = asyncio.Event()
        """Composing may begin."""
        self.committed = asyncio.Event()
        self.composing: asyncio.Task[None] | None = None
        """What composes it, when it was begun before there was a revision for it."""
        self.failure: StageError | None = None
        """Why that did not succeed."""
        self.sentence_ends: float | None = None
        """Probability that a sentence ends after the user's words, where they were read while they spoke."""
        self.opened = asyncio.Event()
        """Its first clause is written, or will not be before it is committed."""
        self.begun = False
        """Composing has cost something."""
        self.composed = False
        """Nothing will be added to it."""
        self.synthesised = 0.0
        """Seconds of speech made for it."""
        self._clock = clock
        self._cutter = cutter
        self._listener: AnswerListener | None = None
        self._deltas: list[str] = []
        self._clauses: list[tuple[str, float]] = []
        self._chunks: list[tuple[SpeechChunk, float]] = []
        self._first_clause = True
        self._rested = 0.0
        """Seconds for which nothing was asked of the engine in mid-reply."""
        self._voiced = asyncio.Event()
        """Something of its own can be heard."""
        self._abandoned = False

    def take_over(self, other: "Answer") -> None:
        """Become what the other was to be: its revision of its turn."""
        ours, theirs = self.trace, other.trace
        self.revision = other.revision
        ours.started_at, ours.speech_end = theirs.started_at, theirs.speech_end
        ours.user_text = theirs.user_text
        if other.wanted.is_set():
            self.wanted.set()
        ours.spans[:] = [replace(span, revision=self.revision) for span in ours.spans] + theirs.spans

    def commit(self, listener: AnswerListener) -> None:
        """The answer is to be heard; the listener catches up with it and is told the rest."""
        self._listener = listener
        self.trace.committed_revision = self.revision
        for delta in self._deltas:
            listener.answer_text(delta)
        for text, at in self._clauses:
            listener.answer_clause(text, at)
        for chunk, at in self._chunks:
            listener.answer_chunk(chunk, at)
        if self.composed:
            listener.answer_composed()
        self.wanted.set()
        self.committed.set()

    def abandon(self) -> None:
        """Nobody waits for it any more: nothing further is told, and what was not played is dropped."""
        self._abandoned = True
        self._listener = None
        self.opened.set()
        if self.composing is not None:
            self.composing.cancel()
        self.reply.stop()

    async def compose(self, prompt: Prompt, model: LanguageModel, synthesizer: Synthesizer) -> None:
        """Think and speak at once: a clause is voiced while the next is written. Raises StageError."""
        self.begun = True
        failure: StageError | None = None
        clauses: asyncio.Queue[_Clause | None] = asyncio.Queue(_CLAUSES_AHEAD)
        try:
            async with asyncio.TaskGroup() as scope:
                scope.create_task(self._think(prompt, model, clauses))
                scope.create_task(self._speak(synthesizer, clauses))
        except* StageError as failures:
            failure = _first(failures)
        finally:
            self.opened.set()
        if self._abandoned:
            # A task group that fails while it is cancelled tells only of the failure (Python 3.11).
            raise asyncio.CancelledError
        if failure is None and self._first_clause:
            failure = EmptyReplyError("the model's reply holds nothing that can be said")
        if failure is not None:
            raise failure
        self._complete()

    async def fill(self, line: SpeechChunk) -> None:
        """Say a line of our own before the reply itself, while there is nothing of it."""
        if not self._chunks and not self._abandoned:
            await self._add(line, line.text, own=False)

    async def say(self, line: SpeechChunk | None) -> None:
        """Close with a line of our own, an apology or a greeting; what was voiced before is still heard."""
        if line is not None:
            await self._add(line, line.text, own=False)
        self._complete()

    def _complete(self) -> None:
        self.composed = True
        self.reply.complete()
        if self._listener is not None:
            self._listener.answer_composed()

    async def _think(
        self, prompt: Prompt, model: LanguageModel, clauses: asyncio.Queue[_Clause | None]
    ) -> None:
        speakable, cutter = SpeakableText(), self._cutter
        started = self._clock.now()
        async with aclosing(model.stream(prompt)) as deltas:
            async for delta in deltas:
                self._note(delta, started)
                for clause in cutter.feed(speakable.feed(delta.text)):
                    await self._hand_on(clause, clauses)
        for clause in (*cutter.feed(speakable.finish()), *cutter.finish()):
            await self._hand_on(clause, clauses)
        await clauses.put(None)

    async def _hand_on(self, clause: str, clauses: asyncio.Queue[_Clause | None]) -> None:
        await clauses.put(_Clause(clause, self._clock.now()))
        if self._first_clause:
            self._first_clause = False
            self.opened.set()
            if self.trace.first_token_at is not None:
                self._span(Stage.FIRST_CLAUSE, self.trace.first_token_at)
            # More is not needed before this is heard, and it may never be; and while the engine rests,
            # the voice is done sooner.
            paused_at = self._clock.now()
            await self._voiced.wait()
            await self.committed.wait()
            self._rested += self._clock.now() - paused_at

    async def _speak(self, synthesizer: Synthesizer, clauses: asyncio.Queue[_Clause | None]) -> None:
        while (written := await clauses.get()) is not None:
            clause: str | None = written.text
            started = self._clock.now()
            async with aclosing(synthesizer.stream(written.text)) as pieces:
                async for piece in pieces:
                    if not self._voiced.is_set():
                        self._span(Stage.TTS, started)
                    voiced_at = self._clock.now()
                    at = await self._add(piece, clause, own=True)
                    if at is not None and clause is not None:
                        self.trace.clause_times.append((at, written.at, voiced_at))
                    self._voiced.set()
                    self.synthesised += piece.duration
                    clause = None

    def _note_audible(self, chunk: SpeechChunk, at: float, *, own: bool) -> None:
        trace = self.trace
        known = trace.first_sound is not None and (trace.first_audible is not None or not own)
        if known or not (runs := audible_runs(chunk.pcm)):
            return
        position = at + runs[0].start / WIRE_RATE
        if trace.first_sound is None:
            trace.first_sound = position
        if own:
            trace.first_audible = position

    async def _add(self, chunk: SpeechChunk, clause: str | None, *, own: bool) -> float | None:
        """Queue a chunk; `clause` is the text that begins with it, None when that began before. Its audio
        position; None when the reply was stopped."""
        at = await self.reply.add(chunk, own=own)
        if at is None:
            return None
        self._note_audible(chunk, at, own=own)
        if clause is not None:
            self._clauses.append((clause, at))
            if self._listener is not None:
                self._listener.answer_clause(clause, at)
        self._chunks.append((chunk, at))
        if self._listener is not None:
            self._listener.answer_chunk(chunk, at)
        return at

    def _note(self, delta: TextDelta, started: float) -> None:
        trace = self.trace
        if delta.text:
            trace.token_times.append(delta.at - self._rested)
            trace.reply_text += delta.text
            self._deltas.append(delta.text)
            if trace.first_token_at is None:
                trace.first_token_at = delta.at
                read_at = delta.at if delta.read_at is None else delta.read_at
                trace.spans.append(Span(Stage.PREFILL, started, read_at, self.revision))
                if delta.read_at is not None:
                    trace.spans.append(Span(Stage.HANDOFF, delta.read_at, delta.at, self.revision))
            if self._listener is not None:
                self._listener.answer_text(delta.text)
        if delta.usage is not None:
            trace.usage = delta.usage

    def _span(self, stage: Stage, started: float) -> None:
        self.trace.spans.append(Span(stage, started, self._clock.now(), self.revision))


def _first(failures: ExceptionGroup[StageError]) -> StageError:
    first = failures.exceptions[0]
    return first if isinstance(first, StageError) else _first(first)
