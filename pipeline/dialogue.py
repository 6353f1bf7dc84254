"""A dialogue: what turn-taking decides about each event, carried out.

`_do` is where decisions become deeds; `_answer` is the life of one revision, from the user's words to
the end of the reply. Every answer is a task in the session's scope.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from pipeline import turn_taking as floor
from pipeline.answer import Answer
from pipeline.asides import Asides
from pipeline.clock import Clock
from pipeline.composer import Composer
from pipeline.delivery import Delivery
from pipeline.errors import NotUnderstoodError, StageError, TranscriptionError
from pipeline.events import (
    Hearing,
    Mood,
    Span,
    SpeechChunk,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    SpeechProgress,
    Stage,
    Stilled,
    Stirring,
    Timeline,
    Transcript,
    TurnInput,
    Utterance,
)
from pipeline.listening import Listening
from pipeline.speculation import Speculation
from pipeline.stages import Saying, Stages
from pipeline.turn_taking import Agent, TurnTaking, User
from pipeline.webrtc.announcer import Announcer

_log = logging.getLogger(__name__)

_GREETING_DELAY = 0.3
"""Seconds after the client is ready."""


class Dialogue:
    """One conversation's turns. Its events come from `Session`; it plays to `delivery`."""

    def __init__(
        self,
        session_id: str,
        stages: Stages,
        clock: Clock,
        announcer: Announcer,
        timeline: Timeline,
        scope: asyncio.TaskGroup,
        rtp_origin: Callable[[], int | None],
    ) -> None:
        self.last_activity = clock.now()
        """When somebody last spoke or typed."""
        self._listening = Listening(session_id, stages, clock, announcer, self.heard)
        self.delivery = Delivery(
            stages,
            clock,
            announcer,
            timeline,
            rtp_origin,
            on_start=lambda: self._do(self._floor.reply_started()),
            on_word=self._listening.played,
        )
        self._session_id = session_id
        self._stages = stages
        self._clock = clock
        self._announcer = announcer
        self._scope = scope
        self._floor = TurnTaking()
        self._composer = Composer(session_id, stages, clock, self.delivery.history)
        self._speculation = Speculation(stages, self._composer, self._listening, self._floor, scope)
        self._answers: dict[int, tuple[Answer, asyncio.Task[None]]] = {}
        self._utterance: Utterance | None = None
        self._typed = ""
        self._over_at: float | None = None
        """When it was decided that the user's turn is over; None while it is not."""
        self._onset: float | None = None
        """When the user's voice last set in; None since they typed or pressed a button."""
        self._opened = False
        self._asides = Asides(scope)

    def mood(self) -> Mood:
        """What the avatar visibly does now."""
        return self._floor.mood

    # ── events ─────────────────────────────────────────────────────────────────────────────────

    def heard(self, hearing: Hearing) -> None:
        """The user's microphone: what may be speech, and speech that began, paused or ended."""
        match hearing:
            case Stirring():
                self._do(self._floor.stirred())
                return
            case Stilled():
                self._do(self._floor.stilled())
                return
            case SpeechOnset(at=at):
                self._onset, self._over_at = at, None
                self._listening.went_on(at)
                self._speculation.went_on()
                self._do(self._floor.speech_started())
            case SpeechProgress(utterance=utterance):
                self._asides.begin(self._speculation.glimpse(utterance))
            case SpeechPause(utterance=utterance):
                self._utterance = utterance
                self._listening.paused(utterance)
                self._speculation.paused(utterance)
                self._do(self._floor.speech_paused())
            case SpeechEnd():
                self._over_at = self._clock.now()
                self._do(self._floor.speech_ended())
        self.last_activity = self._clock.now()

    def typed(self, text: str) -> None:
        """The user sent text: a turn of its own."""
        self.last_activity = self._clock.now()
        self._typed, self._onset, self._over_at = text, None, None
        self._do(self._floor.typed())

    def pressed(self, pressed: bool) -> None:
        """The talk key went down or up."""
        ear, now = self._stages.ear, self._clock.now()
        for hearing in ear.press(now) if pressed else ear.release(now):
            self.heard(hearing)

    def interrupted(self) -> None:
        """The user asked for silence."""
        self._onset = None
        if actions := self._floor.interrupted():
            self._do(actions)
            self._warm()

    def microphone_silent(self) -> None:
        """No audio comes any more: what was being said is over."""
        for hearing in self._stages.ear.mute(self._clock.now()):
            self.heard(hearing)

    def open(self) -> None:
        """The client is ready: warm the engine, and greet unless a turn is under way already."""
        if not self._opened:
            self._opened = True
            self._warm()
            self._asides.begin(self._greet())

    def close(self) -> None:
        """The call is over: a turn under way ends, recorded, and every task with it. Idempotent."""
        if self.delivery.current is not None:
            self.delivery.close(self.delivery.current, failed="disconnected")
        for answer, task in self._answers.values():
            task.cancel()
            answer.abandon()
        self._answers.clear()
        self._speculation.drop_draft()
        self._asides.cancel()
        self.delivery.playout.stop()
        self._stages.headroom.note(self._session_id, busy=False)

    # ── beside the turns ───────────────────────────────────────────────────────────────────────

    def _warm(self) -> None:
        """Use the time while nobody waits for the engine."""
        waiting = self._floor.agent is not Agent.IDLE or self._floor.user is User.MAYBE_DONE
        if self._stages.conduct.warm and not waiting:
            self._asides.begin_idle(self._composer.warm())

    async def _greet(self) -> None:
        # Who came with something to say says it first.
        await self._clock.sleep_until(self._clock.now() + _GREETING_DELAY)
        greeting = self._stages.lines.greeting
        if greeting is None or self._floor.agent is not Agent.IDLE or self._floor.user is not User.SILENT:
            return
        self._do(self._floor.announced(interruptible=self._interruptible(Saying.GREETING)))
        revision, now = self._floor.revision, self._clock.now()
        answer = self._composer.new_answer(revision, TurnInput.TEXT, now, is_turn=False)
        saying = self._scope.create_task(self._say(answer, greeting))
        self._answers[answer.revision] = (answer, saying)
        self.delivery.begin(answer)

    async def _fill(self, answer: Answer, filler: SpeechChunk) -> None:
        """Break the silence when a reply takes long."""
        await self._clock.sleep_until(self._clock.now() + self._stages.conduct.filler_after)
        if answer is self.delivery.current:
            await answer.fill(filler)

    # ── what turn-taking decides ───────────────────────────────────────────────────────────────

    def _do(self, actions: Sequence[floor.Action]) -> None:
        playout = self.delivery.playout
        for action in actions:
            match action:
                case floor.Begin():
                    self._begin(action)
                case floor.Answer(revision=revision):
                    self._answers[revision][0].wanted.set()
                case floor.Commit(revision=revision):
                    self._commit(revision)
                case floor.Drop(revision=revision):
                    self._drop(*self._answers.pop(revision))
                case floor.Dismiss(revision=revision):
                    self._dismiss(revision)
                case floor.Forget():
                    self._stages.ear.forget()
                case floor.Duck():
                    playout.duck()
                case floor.Unduck():
                    playout.unduck()
                case floor.Hold():
                    self.delivery.hold()
                case floor.Resume():
                    self.delivery.resume()
                case floor.Cancel():
                    _, task = self._answers.pop(self.delivery.interrupt(self._onset).revision)
                    task.cancel()
                case floor.Reopen():
                    self._listening.reopened()
                    self._drop(*self._answers.pop(self.delivery.withdraw().revision))
        busy = self._floor.replying or self._floor.user is not User.SILENT
        self._stages.headroom.note(self._session_id, busy=busy)
        self._announcer.state(user=self._floor.user, agent=self._floor.agent, mood=self._floor.mood)

    def _begin(self, begin: floor.Begin) -> None:
        self._asides.stop_idle()
        utterance, self._utterance = self._utterance, None
        revision, now = self._floor.revision, self._clock.now()
        if utterance is None:
            answer = self._composer.new_answer(revision, TurnInput.TEXT, now, self._typed)
        else:
            answer = self._composer.new_answer(revision, TurnInput.VOICE, utterance.started_at)
        answer.trace.speech_end = now if utterance is None else utterance.ended_at
        if begin.answer:
            answer.wanted.set()
        self._answers[revision] = answer, self._scope.create_task(self._answer(revision, utterance))

    def _interruptible(self, saying: Saying) -> bool:
        return saying not in self._stages.conduct.uninterruptible

    def _commit(self, revision: int) -> None:
        answer, now = self._answers[revision][0], self._clock.now()
        trace = answer.trace
        # What is waited for from then on is no end of a turn but its words.
        over_at, self._over_at = self._over_at or now, None
        trace.spans.append(Span(Stage.ENDPOINTING, trace.speech_end or now, over_at, revision))
        self._speculation.settle(trace)
        self._listening.turn_over()
        if trace.user_text:
            self._announcer.transcript(trace.user_text, final=True)
        self.delivery.begin(answer)
        if not self._interruptible(Saying.REPLY):
            self._do(self._floor.uninterruptible())
        if self._stages.lines.filler is not None:
            self._asides.begin(self._fill(answer, self._stages.lines.filler))

    def _drop(self, answer: Answer, task: asyncio.Task[None]) -> None:
        task.cancel()
        answer.abandon()
        self._speculation.wasted(answer)

    def _dismiss(self, revision: int) -> None:
        self._drop(*self._answers.pop(revision))
        self._listening.dismissed()
        self._speculation.forget()
        if self.delivery.unheard is None:  # else what comes next may go on with that turn
            self._stages.ear.close_utterance()

    # ── one revision ───────────────────────────────────────────────────────────────────────────

    async def _answer(self, revision: int, utterance: Utterance | None) -> None:
        """From words to the end of the reply; cancelled when the revision is dropped."""
        try:
            if utterance is None:
                answer = self._answers[revision][0]
                await self._composer.compose(answer, await self._composer.write_prompt(answer))
            elif (transcript := await self._transcribe(revision, utterance)) is None:
                return
            else:
                await self._consider(revision, transcript, utterance)
        except StageError as error:
            await self._apologise(self._answers[revision][0], error)
        answer = self._answers[revision][0]
        await answer.committed.wait()
        await answer.reply.done.wait()
        self._end(answer)
        self._warm()

    async def _transcribe(self, revision: int, utterance: Utterance) -> Transcript | None:
        """What was said, when it asks for an answer."""
        answer, task = self._answers[revision]
        try:
            transcript = await self._listening.transcribe(utterance, answer)
            unheard = self.delivery.unheard
            asks = self._listening.asks(
                transcript,
                utterance,
                replying=self._floor.replying,
                committed=None if unheard is None else unheard.trace.user_text,
            )
        except (TranscriptionError, NotUnderstoodError):
            self._do(self._floor.transcribed(revision, asks=True))
            raise
        if not asks:
            self._do(self._floor.transcribed(revision, asks=False))
            if self._floor.replying:  # nobody is kept waiting for the rest of a reply; else more may come
                self._listening.end_pause_after(0.0)
            return None
        answer.trace.user_text = transcript.text
        self._listening.show(transcript.text)
        self._answers[revision] = self._speculation.take(answer), task
        self._do(self._floor.transcribed(revision, asks=True))
        return transcript

    async def _consider(self, revision: int, transcript: Transcript, utterance: Utterance) -> None:
        """Compose the reply, and find out meanwhile whether this was all."""
        answer, _ = self._answers[revision]
        await answer.wanted.wait()
        prompt = answer.trace.prompt or await self._composer.write_prompt(answer)
        self._asides.begin(self._listening.judge(answer, prompt, utterance))
        await self._speculation.compose(answer, prompt)

    async def _apologise(self, answer: Answer, error: StageError) -> None:
        """No turn ends in silence; whether this is one is known when it is committed."""
        await answer.committed.wait()
        _log.warning("session %s: turn %s failed: %s", self._session_id, answer.trace.turn_id, error)
        answer.trace.failed = error.code
        self._announcer.failed(error.told, code=error.code)
        if answer is self.delivery.current and not self._interruptible(Saying.APOLOGY):
            self._do(self._floor.uninterruptible())
        await answer.say(self._stages.lines.after(error))

    async def _say(self, answer: Answer, chunk: SpeechChunk) -> None:
        """A line of our own, without a turn."""
        await answer.say(chunk)
        await answer.reply.done.wait()
        self._end(answer)

    def _end(self, answer: Answer) -> None:
        """It was played to its end."""
        del self._answers[answer.revision]
        self.delivery.close(answer)
        self.last_activity = self._clock.now()
        self._do(self._floor.reply_ended())
