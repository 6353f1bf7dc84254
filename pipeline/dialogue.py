"""A dialogue: what turn-taking decides about each event, carried out.

`_do` is where decisions become deeds; `_answer` is the life of one revision, from the user's words to
the end of the reply. Every answer is a task in the session's scope, and a turn ends in exactly one
`_close_turn`, whatever happens to it.
"""

import asyncio
import logging
import uuid
from collections.abc import Sequence

from pipeline import turn_taking as floor
from pipeline.answer import Answer
from pipeline.clock import Clock
from pipeline.conversation import Conversation, Exchange
from pipeline.errors import LanguageModelError, StageError, TranscriptionError
from pipeline.events import (
    Hearing,
    Mood,
    Span,
    SpeechChunk,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    Stage,
    TurnInput,
    TurnRecorder,
    TurnTrace,
    Utterance,
)
from pipeline.stages import Stages
from pipeline.turn_taking import Agent, TurnTaking, User
from pipeline.webrtc.announcer import Announcer
from pipeline.webrtc.playout import Playout
from pipeline.webrtc.reply import HeardWord, Reply

_log = logging.getLogger(__name__)


_GREETING_DELAY = 0.3
"""Seconds after the client is ready."""


class Dialogue:
    """One conversation's turns. Its events come from `Session`; it plays to `playout`."""

    def __init__(
        self,
        session_id: str,
        stages: Stages,
        clock: Clock,
        announcer: Announcer,
        recorder: TurnRecorder,
        scope: asyncio.TaskGroup,
    ) -> None:
        self.playout = Playout(clock, self)
        self.last_activity = clock.now()
        """When somebody last spoke or typed."""
        self._session_id = session_id
        self._stages = stages
        self._clock = clock
        self._announcer = announcer
        self._recorder = recorder
        self._scope = scope
        self._floor = TurnTaking()
        self._conversation = Conversation()
        self._answers: dict[int, tuple[Answer, asyncio.Task[None]]] = {}
        self._utterance: Utterance | None = None
        self._typed = ""
        self._current: Answer | None = None
        self._greeting: Answer | None = None
        self._opened = False
        self._greeter: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._spans_dropped: list[Span] = []
        self._cancels = 0

    def mood(self) -> Mood:
        """What the avatar visibly does now."""
        if self._floor.agent is Agent.SPEAKING:
            return Mood.SPEAKING
        if self._floor.user is not User.SILENT:
            return Mood.LISTENING
        return Mood.THINKING if self._floor.agent is Agent.PREPARING else Mood.IDLE

    # ── events ─────────────────────────────────────────────────────────────────────────────────

    def heard(self, hearing: Hearing) -> None:
        """The user's microphone: speech began, paused or ended."""
        self.last_activity = self._clock.now()
        match hearing:
            case SpeechOnset():
                self._do(self._floor.speech_started())
            case SpeechPause(utterance=utterance):
                self._utterance = utterance
                self._do(self._floor.speech_paused())
            case SpeechEnd():
                self._do(self._floor.speech_ended())

    def typed(self, text: str) -> None:
        """The user sent text: a turn of its own."""
        self.last_activity = self._clock.now()
        self._typed = text
        self._do(self._floor.typed())

    def microphone_silent(self) -> None:
        """No audio comes any more: what was being said is over."""
        if self._floor.user is not User.SILENT:
            for hearing in self._stages.ear.mute(self._clock.now()):
                self.heard(hearing)

    def open(self) -> None:
        """The client is ready: warm the engine, and greet unless a turn is under way already."""
        if not self._opened:
            self._opened = True
            self._warm()
            self._greeter = self._scope.create_task(self._greet())

    def _warm(self) -> None:
        """Have the engine read what the next prompt begins with while nobody waits for it."""
        self._stop_warming()
        self._warming = self._scope.create_task(self._warm_engine())

    def _stop_warming(self) -> None:
        if self._warming is not None:
            self._warming.cancel()
            self._warming = None

    async def _warm_engine(self) -> None:
        try:
            opening = await self._stages.prompts.opening(self._conversation.history())
            await self._stages.language_model.warm(opening)
        except LanguageModelError as error:
            _log.info("session %s: the engine could not be warmed: %s", self._session_id, error)

    async def _greet(self) -> None:
        # Who came with something to say says it first.
        await self._clock.sleep_until(self._clock.now() + _GREETING_DELAY)
        greeting = self._stages.greeting
        busy = self._floor.agent is not Agent.IDLE or self._floor.user is not User.SILENT
        if greeting is None or busy:
            return
        self._do(self._floor.announced())
        self._greeting = answer = self._new_answer(TurnInput.TEXT, self._clock.now())
        saying = self._scope.create_task(self._say(answer, greeting))
        self._answers[answer.revision] = (answer, saying)
        self._hand_over(answer)

    def close(self) -> None:
        """The call is over: a turn under way ends, recorded, and every task with it. Idempotent."""
        if self._current is not None:
            _, task = self._answers[self._current.revision]
            self._close_turn(self._current, failed="disconnected")
            task.cancel()
        for answer, task in self._answers.values():
            task.cancel()
            answer.abandon()
        self._answers.clear()
        self._stop_warming()
        if self._greeter is not None:
            self._greeter.cancel()
        self.playout.stop()

    # ── what turn-taking decides ───────────────────────────────────────────────────────────────

    def _do(self, actions: Sequence[floor.Action]) -> None:
        for action in actions:
            match action:
                case floor.Begin():
                    self._begin(action)
                case floor.Commit(revision=revision):
                    self._commit(revision)
                case floor.Drop(revision=revision):
                    self._drop(revision)
                case floor.Dismiss(revision=revision):
                    self._stages.ear.close_utterance()
                    self._drop(revision)
                case floor.Forget():
                    self._stages.ear.forget()
                case floor.Hold():
                    self.playout.hold()
                case floor.Resume():
                    self.playout.resume()
                case floor.Cancel():
                    self._cancel()
        self._announcer.state(user=self._floor.user, agent=self._floor.agent, mood=self.mood())

    def _begin(self, begin: floor.Begin) -> None:
        self._stop_warming()
        utterance, self._utterance = self._utterance, None
        if utterance is None:
            answer = self._new_answer(TurnInput.TEXT, self._clock.now())
            answer.trace.user_text = self._typed
        else:
            answer = self._new_answer(TurnInput.VOICE, utterance.started_at)
            answer.trace.speech_end = utterance.ended_at
        if begin.answer:
            answer.wanted.set()
        task = self._scope.create_task(self._answer(answer, utterance))
        self._answers[answer.revision] = (answer, task)

    def _commit(self, revision: int) -> None:
        answer, _ = self._answers[revision]
        trace = answer.trace
        if trace.input is TurnInput.VOICE:
            self._stages.ear.close_utterance()
        if trace.speech_end is None:
            trace.speech_end = trace.started_at
        trace.spans.append(Span(Stage.ENDPOINTING, trace.speech_end, self._clock.now(), revision))
        trace.spans[:0], trace.cancels = self._spans_dropped, self._cancels
        self._spans_dropped, self._cancels = [], 0
        if trace.user_text:
            self._announcer.transcript(trace.user_text, final=True)
        self._hand_over(answer)

    def _hand_over(self, answer: Answer) -> None:
        """From here on, this answer is what is played and seen."""
        self._current = answer
        self._stages.performer.clear()
        self._announcer.reply_begins()
        self.playout.play(answer.reply)
        answer.commit(self)

    def _drop(self, revision: int) -> None:
        answer, task = self._answers.pop(revision)
        task.cancel()
        answer.abandon()
        self._spans_dropped += answer.trace.spans
        self._cancels += answer.wanted.is_set()

    def _cancel(self) -> None:
        answer = self._current
        if answer is None:
            return
        _, task = self._answers[answer.revision]
        task.cancel()
        self.playout.stop()
        answer.abandon()
        answer.trace.cancels += 1
        self._close_turn(answer, interrupted=True)

    # ── one revision ───────────────────────────────────────────────────────────────────────────

    def _new_answer(self, kind: TurnInput, started_at: float) -> Answer:
        trace = TurnTrace(uuid.uuid4().hex[:12], self._session_id, kind, started_at)
        return Answer(self._floor.revision, trace, self._clock, self._stages.language)

    async def _answer(self, answer: Answer, utterance: Utterance | None) -> None:
        """From words to the end of the reply; cancelled when the revision is dropped."""
        try:
            if utterance is not None and not await self._transcribe(answer, utterance):
                return
            await answer.wanted.wait()
            await answer.compose(
                lambda: self._stages.prompts.write(self._conversation.history(), answer.trace.user_text),
                self._stages.language_model,
                self._stages.synthesizer,
            )
        except StageError as error:
            await self._apologise(answer, error)
        await answer.committed.wait()
        await answer.reply.done.wait()
        self._close_turn(answer)
        self._do(self._floor.reply_ended())
        self._warm()

    async def _transcribe(self, answer: Answer, utterance: Utterance) -> bool:
        """Whether there is something to answer."""
        started = self._clock.now()
        try:
            transcript = await self._stages.transcriber.transcribe(utterance.samples)
        except TranscriptionError:
            self._do(self._floor.transcribed(answer.revision, has_words=True))
            raise
        answer.trace.spans.append(Span(Stage.ASR, started, self._clock.now(), answer.revision))
        answer.trace.user_text = transcript.text
        if transcript.text:
            self._announcer.transcript(transcript.text, final=False)
        else:
            _log.info("session %s: a sound was no speech: %s", self._session_id, transcript.rejected)
        self._do(self._floor.transcribed(answer.revision, has_words=bool(transcript.text)))
        return bool(transcript.text)

    async def _apologise(self, answer: Answer, error: StageError) -> None:
        """No turn ends in silence; whether this is one is known when it is committed."""
        await answer.committed.wait()
        _log.warning("session %s: turn %s failed: %s", self._session_id, answer.trace.turn_id, error)
        answer.trace.failed = error.code
        self._announcer.failed(error.told, code=error.code)
        await answer.say(self._stages.apology)

    async def _say(self, answer: Answer, chunk: SpeechChunk) -> None:
        """A line of our own, without a turn."""
        await answer.say(chunk)
        await answer.reply.done.wait()
        self._close_turn(answer)
        self._do(self._floor.reply_ended())

    def _close_turn(self, answer: Answer, *, interrupted: bool = False, failed: str | None = None) -> None:
        """The turn's one terminal event."""
        trace = answer.trace
        self._current = None
        self._answers.pop(answer.revision, None)
        self._stages.performer.clear()
        if answer.reply.started.is_set():
            self._announcer.stopped_speaking(interrupted=interrupted)
        self.last_activity = trace.ended_at = self._clock.now()
        if answer is self._greeting:
            return
        trace.interrupted = interrupted
        trace.failed = trace.failed or failed
        trace.heard_text = answer.reply.heard_text()
        self._conversation.add(Exchange(trace.user_text, trace.heard_text))
        self._announcer.turn(self._recorder(trace))

    # ── what goes out: PlayoutListener and AnswerListener ──────────────────────────────────────

    def reply_started(self, reply: Reply) -> None:
        answer = self._current
        assert answer is not None
        answer.trace.first_sound_at = self._clock.now()
        if answer.trace.failed is None and answer is not self._greeting:
            answer.trace.first_audio_at = answer.trace.first_sound_at
        self._announcer.started_speaking()
        self._do(self._floor.reply_started())

    def word_started(self, reply: Reply, word: HeardWord) -> None:
        self._announcer.word(word)

    def answer_text(self, delta: str) -> None:
        self._announcer.text(delta)

    def answer_chunk(self, chunk: SpeechChunk, at: float) -> None:
        self._stages.performer.cue(chunk, at)
        self._announcer.segment(chunk.text, at)

    def answer_composed(self) -> None:
        self._announcer.composed()
