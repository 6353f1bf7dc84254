"""A session: one peer, one conversation, and the scope of everything it started.

The only place where stages meet. Read `_hear` and `_read_messages` for what comes in, `_do` for what
turn-taking decides about it, and `_answer` for what becomes of one revision.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline import turn_taking as floor
from pipeline.answer import Answer
from pipeline.asr.ear import Ear
from pipeline.clock import Clock
from pipeline.conversation import Conversation, Exchange
from pipeline.errors import BadMessageError, StageError, TranscriptionError, VisavisError
from pipeline.events import (
    Face,
    Hearing,
    LanguageModel,
    Message,
    Mood,
    Performer,
    Prompt,
    Span,
    SpeechChunk,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    Stage,
    Synthesizer,
    Transcriber,
    TurnTrace,
    Utterance,
)
from pipeline.turn_taking import Agent, TurnTaking, User
from pipeline.webrtc import rtvi
from pipeline.webrtc.announcer import Announcer
from pipeline.webrtc.peer import IceServer, Peer
from pipeline.webrtc.playout import HeardWord, Playout, Reply
from pipeline.webrtc.tracks import FaceTrack, VoiceTrack

_log = logging.getLogger(__name__)

_MICROPHONE_GAP = 1.0
"""Seconds without a packet after which a microphone counts as silent, so that no turn hangs on it."""


class PromptWriter(Protocol):
    def __call__(self, history: Sequence[Message], turn: str) -> Awaitable[Prompt]: ...


class TurnRecorder(Protocol):
    """The timeline's seam: told once about every turn when it is over; gives its record."""

    def __call__(self, trace: TurnTrace) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Stages:
    """What a session is made of. Ear and performer keep a stream's memory and are its own."""

    ear: Ear
    transcriber: Transcriber
    write_prompt: PromptWriter
    language_model: LanguageModel
    synthesizer: Synthesizer
    performer: Performer
    face: Face
    render_executor: Executor
    apology: SpeechChunk
    greeting: SpeechChunk | None = None


@dataclass(frozen=True, slots=True)
class SessionSettings:
    name: str = "Vis"
    version: str = "0"
    max_text_chars: int = 2000
    connect_timeout: float = 30.0
    """Seconds from the offer to a connected call."""
    idle_timeout: float = 300.0
    """Seconds without a turn after which a session is closed."""
    fps: int = 25
    video_codec: str = "VP8"
    ice_servers: Sequence[IceServer] = field(default_factory=tuple)


class Session:
    """Create it, `answer` the offer, then `run` it to its end."""

    def __init__(
        self,
        session_id: str,
        stages: Stages,
        settings: SessionSettings,
        clock: Clock,
        recorder: TurnRecorder,
    ) -> None:
        self.session_id = session_id
        self._stages = stages
        self._settings = settings
        self._clock = clock
        self._recorder = recorder
        self._floor = TurnTaking()
        self._conversation = Conversation()
        self._playout = Playout(clock, self)
        origin = clock.now()
        voice = VoiceTrack(clock, origin, self._playout)
        face = FaceTrack(
            clock,
            origin,
            self._playout,
            stages.performer,
            stages.face,
            self.mood,
            stages.render_executor,
            fps=settings.fps,
        )
        self._peer = Peer(
            clock, voice, face, ice_servers=settings.ice_servers, video_codec=settings.video_codec
        )
        self._announcer = Announcer(self._peer.send, settings.name, settings.version)
        self._answers: dict[int, tuple[Answer, asyncio.Task[None]]] = {}
        self._exchanges: dict[int, Exchange] = {}
        self._utterance: Utterance | None = None
        self._typed = ""
        self._current: Answer | None = None
        self._greeted = False
        self._last_activity = origin
        self._hang_up = asyncio.Event()
        self._scope = asyncio.TaskGroup()

    @property
    def peer(self) -> Peer:
        return self._peer

    def hang_up(self) -> None:
        """End the session soon; `run` returns."""
        self._hang_up.set()

    async def run(self) -> None:
        """The call, from the offer's answer to its end. Afterwards nothing of it survives."""
        try:
            async with self._scope as scope:
                loops = [scope.create_task(self._hear()), scope.create_task(self._read_messages())]
                await self._until_over(scope)
                for task in [*loops, *(task for _, task in self._answers.values())]:
                    task.cancel()
        finally:
            if self._current is not None:
                self._close_turn(self._current, failed="disconnected")
            self._playout.stop()
            self._announcer.left()
            await self._peer.close()

    def mood(self) -> Mood:
        """What the avatar visibly does now."""
        if self._floor.agent is Agent.SPEAKING:
            return Mood.SPEAKING
        if self._floor.user is not User.SILENT:
            return Mood.LISTENING
        return Mood.THINKING if self._floor.agent is Agent.PREPARING else Mood.IDLE

    # ── what comes in ──────────────────────────────────────────────────────────────────────────

    async def _hear(self) -> None:
        ear = self._stages.ear
        async for pcm, at in self._peer.microphone(_MICROPHONE_GAP):
            if pcm is not None:
                heard = ear.hear(pcm, at)
            elif self._floor.user is User.SILENT:
                continue
            else:
                heard = ear.mute(at)
            for hearing in heard:
                self._on_hearing(hearing)

    def _on_hearing(self, hearing: Hearing) -> None:
        self._last_activity = self._clock.now()
        match hearing:
            case SpeechOnset():
                self._do(self._floor.speech_started())
            case SpeechPause(utterance=utterance):
                self._utterance = utterance
                self._do(self._floor.speech_paused())
            case SpeechEnd():
                self._do(self._floor.speech_ended())

    async def _read_messages(self) -> None:
        async for message in self._peer.messages():
            match message:
                case rtvi.ClientReady(id=identifier):
                    self._announcer.ready(identifier)
                    self._greet()
                case rtvi.SendText(content=content):
                    self._on_text(content)
                case rtvi.TrackStatus(receiver_index=0, enabled=False):
                    for hearing in self._stages.ear.mute(self._clock.now()):
                        self._on_hearing(hearing)
                case rtvi.DisconnectBot():
                    self.hang_up()
                case BadMessageError():
                    self._announcer.failed(str(message), code=message.code)
                case _:
                    _log.debug("session %s: nothing to do for %s", self.session_id, type(message).__name__)

    def _on_text(self, content: str) -> None:
        limit = self._settings.max_text_chars
        text = content.strip()
        if len(text) > limit:
            self._announcer.failed(
                f"The text has {len(text):,} characters; at most {limit:,} can be read at once.",
                code="text_too_long",
            )
        elif not text:
            self._announcer.failed("The text is empty.", code="text_empty")
        else:
            self._last_activity = self._clock.now()
            if self._floor.user is User.MAYBE_DONE:
                self._stages.ear.forget()
            self._typed = text
            self._do(self._floor.typed())

    def _greet(self) -> None:
        greeting = self._stages.greeting
        if greeting is None or self._greeted or self._floor.agent is not Agent.IDLE:
            return
        self._greeted = True
        self._do(self._floor.announced())
        answer = self._new_answer("greeting", self._clock.now())
        self._answers[answer.revision] = (answer, self._scope.create_task(self._say(answer, greeting)))
        self._hand_over(answer)

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
                case floor.Hold():
                    self._playout.hold()
                case floor.Resume():
                    self._playout.resume()
                case floor.Cancel():
                    self._cancel()
        self._announcer.state(user=self._floor.user, agent=self._floor.agent, mood=self.mood())

    def _begin(self, begin: floor.Begin) -> None:
        utterance, self._utterance = self._utterance, None
        if utterance is None:
            answer = self._new_answer("text", self._clock.now())
            answer.trace.user_text = self._typed
        else:
            answer = self._new_answer("voice", utterance.started_at)
            answer.trace.speech_end = utterance.ended_at
        if begin.answer:
            answer.wanted.set()
        task = self._scope.create_task(self._answer(answer, utterance))
        self._answers[answer.revision] = (answer, task)

    def _commit(self, revision: int) -> None:
        answer, _ = self._answers[revision]
        trace = answer.trace
        if trace.input == "voice":
            self._stages.ear.close_utterance()
        if trace.speech_end is None:
            trace.speech_end = trace.started_at
        trace.spans.append(Span(Stage.ENDPOINTING, trace.speech_end, self._clock.now(), revision))
        self._exchanges[revision] = self._conversation.commit(trace.user_text)
        if trace.user_text:
            self._announcer.transcript(trace.user_text, final=True)
        self._hand_over(answer)

    def _hand_over(self, answer: Answer) -> None:
        """From here on, this answer is what is played and seen."""
        self._current = answer
        self._stages.performer.clear()
        self._announcer.reply_begins()
        self._playout.play(answer.reply)
        answer.commit(self)

    def _drop(self, revision: int) -> None:
        answer, task = self._answers.pop(revision)
        task.cancel()
        answer.reply.stop()

    def _cancel(self) -> None:
        answer = self._current
        if answer is None:
            return
        _, task = self._answers[answer.revision]
        self._playout.stop()
        self._close_turn(answer, interrupted=True)
        task.cancel()

    # ── one revision ───────────────────────────────────────────────────────────────────────────

    def _new_answer(self, kind: str, started_at: float) -> Answer:
        trace = TurnTrace(uuid.uuid4().hex[:12], self.session_id, kind, started_at)
        return Answer(self._floor.revision, trace, self._clock)

    async def _answer(self, answer: Answer, utterance: Utterance | None) -> None:
        """From words to the end of the reply; cancelled when the revision is dropped."""
        try:
            if utterance is not None and not await self._transcribe(answer, utterance):
                return
            await answer.wanted.wait()
            await answer.compose(
                lambda: self._stages.write_prompt(self._conversation.history(), answer.trace.user_text),
                self._stages.language_model,
                self._stages.synthesizer,
            )
        except StageError as error:
            await self._apologise(answer, error)
        await answer.committed.wait()
        await answer.reply.done.wait()
        self._close_turn(answer)
        self._do(self._floor.reply_ended())

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
        self._do(self._floor.transcribed(answer.revision, has_words=bool(transcript.text)))
        return bool(transcript.text)

    async def _apologise(self, answer: Answer, error: StageError) -> None:
        """No turn ends in silence; whether this is one is known when it is committed."""
        await answer.committed.wait()
        _log.warning("session %s: turn %s failed: %s", self.session_id, answer.trace.turn_id, error)
        answer.trace.failed = error.code
        self._announcer.failed(str(error), code=error.code)
        await answer.apologise(self._stages.apology)

    async def _say(self, answer: Answer, chunk: SpeechChunk) -> None:
        """A line of our own, without a turn."""
        await answer.apologise(chunk)
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
        self._last_activity = trace.ended_at = self._clock.now()
        if trace.input == "greeting":
            return
        trace.interrupted = interrupted
        trace.failed = trace.failed or failed
        trace.heard_text = answer.reply.heard_text()
        self._exchanges.pop(answer.revision).assistant = trace.heard_text
        self._announcer.turn(self._recorder(trace))

    # ── what goes out: PlayoutListener and AnswerListener ──────────────────────────────────────

    def reply_started(self, reply: Reply) -> None:
        answer = self._current
        assert answer is not None
        answer.trace.first_sound_at = self._clock.now()
        if answer.trace.failed is None and answer.trace.input != "greeting":
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

    # ── the end ────────────────────────────────────────────────────────────────────────────────

    async def _until_over(self, scope: asyncio.TaskGroup) -> None:
        """Return when the call ended, was hung up, never came about, or nobody spoke for long."""
        watches = [
            scope.create_task(self._peer.closed.wait()),
            scope.create_task(self._hang_up.wait()),
            scope.create_task(self._never_connected()),
            scope.create_task(self._nobody_speaks()),
        ]
        await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
        for watch in watches:
            watch.cancel()

    async def _never_connected(self) -> None:
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                await self._peer.connected.wait()
        except TimeoutError:
            _log.warning(
                "session %s: no connection within %g s", self.session_id, self._settings.connect_timeout
            )
            return
        await asyncio.get_running_loop().create_future()  # connected: this is no reason to end

    async def _nobody_speaks(self) -> None:
        while (deadline := self._last_activity + self._settings.idle_timeout) > self._clock.now():
            await self._clock.sleep_until(deadline)
        _log.info("session %s: nobody spoke for %g s", self.session_id, self._settings.idle_timeout)
        self._announcer.failed(
            "The conversation was closed because nobody spoke for a while.", code="idle", fatal=True
        )
