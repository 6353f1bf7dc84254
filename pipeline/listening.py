"""Understanding the user: transcripts, whether they ask for an answer, how long to wait for more.

Whatever is said over the agent's own voice is doubted: it may be that voice coming back, or the sound of
somebody who listens.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeline.answer import Answer
from pipeline.asr.backchannel import is_backchannel, stands_alone
from pipeline.asr.partials import StablePartial, equivalent
from pipeline.asr.patience import Evidence, Patience
from pipeline.asr.self_speech import is_own_speech
from pipeline.clock import Clock
from pipeline.errors import NotUnderstoodError
from pipeline.events import Hearing, Prompt, Span, Stage, Transcript, Utterance
from pipeline.stages import Stages
from pipeline.webrtc.announcer import Announcer

_log = logging.getLogger(__name__)

_ECHO_DELAY = 0.7
"""Seconds for which a word that goes out may be on its way to the user's loudspeaker and back."""

_REMEMBERED = 60.0
"""Seconds for which what was played is kept: longer than any utterance."""

_WHOLE_ANSWER = 0.97
"""Probability that a sentence ends after "Yes" or "Hello"; the engine, which reads them as beginnings, gives
next to none."""

_COVERS = 0.064
"""A transcript of the speech up to this long before its end, in seconds, is a transcript of all of it."""


@dataclass(slots=True)
class _Glimpse:
    """A transcription that was begun while the user still spoke."""

    utterance: Utterance
    transcript: asyncio.Future[Transcript]
    """Cancelled when it came to nothing."""


class Listening:
    """One user's words, from utterances to what they ask for."""

    def __init__(
        self,
        session_id: str,
        stages: Stages,
        clock: Clock,
        announcer: Announcer,
        on_hearing: Callable[[Hearing], None],
    ) -> None:
        """`on_hearing` is told when a judgement ends the turn."""
        self._on_hearing = on_hearing
        self._announcer = announcer
        self._partial = StablePartial()
        self._session_id = session_id
        self._stages = stages
        self._clock = clock
        self._patience = Patience(stages.conduct.patience)
        self._played: deque[tuple[float, str]] = deque()
        self._glimpse: _Glimpse | None = None
        self._utterance: Utterance | None = None
        """What was said before the present pause."""
        self._evidence: Evidence | None = None
        """What is known of it."""
        self._committed: tuple[Utterance | None, Evidence | None] = None, None
        """Both, of the turn that was over last."""
        self._went_on_at = 0.0
        """When the user last began to speak."""

    # ── transcripts ────────────────────────────────────────────────────────────────────────────

    async def glimpse(self, utterance: Utterance) -> Transcript | None:
        """What was said so far, while the user goes on; None while the one before is not done.

        Raises TranscriptionError.
        """
        if self._glimpse is not None and not self._glimpse.transcript.done():
            return None
        result: asyncio.Future[Transcript] = asyncio.get_running_loop().create_future()
        self._glimpse = _Glimpse(utterance, result)
        try:
            transcript = await self._stages.transcriber.transcribe(utterance.samples)
            result.set_result(transcript)
        finally:
            result.cancel()
        return transcript

    async def transcribe(self, utterance: Utterance, answer: Answer) -> Transcript:
        """What was said, in answer to which `answer` will be. Raises TranscriptionError."""
        started = self._clock.now()
        glimpse, self._glimpse = self._glimpse, None
        transcript: Transcript | None = None
        if glimpse is not None and utterance.ended_at - glimpse.utterance.ended_at <= _COVERS:
            await asyncio.wait([glimpse.transcript])
            transcript = None if glimpse.transcript.cancelled() else glimpse.transcript.result()
        if transcript is None:
            transcript = await self._stages.transcriber.transcribe(utterance.samples)
        answer.trace.spans.append(Span(Stage.ASR, started, self._clock.now(), answer.revision))
        return transcript

    def show(self, text: str) -> None:
        """Tell the client as much of the turn as is sure by this newest reading of it."""
        if self._partial.update(text):
            self._announcer.transcript(self._partial.text, final=False)

    def asks(
        self, transcript: Transcript, utterance: Utterance, *, replying: bool, committed: str | None
    ) -> bool:
        """Whether what was said asks for an answer; `committed` is what is being answered already.

        Raises NotUnderstoodError when it does and no word of it could be made out.
        """
        text = transcript.text
        if not text:
            if not replying and utterance.voiced >= self._stages.conduct.least_voiced:
                raise NotUnderstoodError(f"no words in {utterance.voiced:.1f} s: {transcript.rejected}")
            _log.info("session %s: a sound was no speech: %s", self._session_id, transcript.rejected)
            return False
        if is_own_speech(text, self._played_meanwhile(utterance)):
            _log.info("session %s: the agent's own voice came back", self._session_id)
            return False
        if replying and is_backchannel(text, self._stages.language):
            return False
        return committed is None or not equivalent(text, committed)

    def played(self, word: str) -> None:
        """A word of the agent's goes out."""
        self._played.append((self._clock.now(), word))
        while self._played[0][0] < self._clock.now() - _REMEMBERED:
            self._played.popleft()

    def _played_meanwhile(self, utterance: Utterance) -> list[str]:
        begin = utterance.started_at - _ECHO_DELAY
        return [word for at, word in self._played if begin <= at <= utterance.ended_at]

    # ── patience ───────────────────────────────────────────────────────────────────────────────

    def end_pause_after(self, patience: float) -> None:
        """The present pause ends the turn once it has lasted `patience` seconds; perhaps it has."""
        for hearing in self._stages.ear.judged(patience):
            self._on_hearing(hearing)

    async def judge(self, answer: Answer, prompt: Prompt, utterance: Utterance) -> None:
        """Decide how long to wait for more: by the words and the engine reading them, and where these leave
        it open, by how they sounded.

        What was not read while the user spoke is read when the answer's first clause is written, so as not
        to delay it.
        """
        words = answer.trace.user_text
        if answer.sentence_ends is not None:
            self._decide(utterance, self._evidence_of(words, answer.sentence_ends))
        await answer.opened.wait()
        if utterance is not self._utterance:
            return
        if answer.sentence_ends is None:
            answer.sentence_ends = await self._stages.language_model.read(prompt)
        evidence, detector = self._evidence_of(words, answer.sentence_ends), self._stages.turn_end
        self._decide(utterance, evidence)
        if detector is not None and self._patience.hinges_on_sound(evidence):
            sound = await detector.finished(utterance.samples)
            self._decide(utterance, replace(evidence, sound=sound))

    def _decide(self, utterance: Utterance, evidence: Evidence) -> None:
        if utterance is not self._utterance:
            return  # the user went on meanwhile
        self._evidence = evidence
        self.end_pause_after(self._patience.with_evidence(evidence))

    def likely_complete(self, transcript: Transcript, sentence_ends: float) -> bool:
        """Whether what was said so far seems to be all."""
        return self._patience.likely_complete(self._evidence_of(transcript.text, sentence_ends))

    def _evidence_of(self, text: str, words: float | None) -> Evidence:
        if stands_alone(text, self._stages.language):
            words = _WHOLE_ANSWER
        return Evidence(words, _punctuated(text), len(text.split()), trails_off=_trails_off(text))

    def paused(self, utterance: Utterance) -> None:
        """The user fell silent; perhaps that was all."""
        self._utterance, self._evidence = utterance, None

    def went_on(self, at: float) -> None:
        """The user spoke, perhaps after a pause inside the turn."""
        self._learn(self._utterance, self._evidence, at)
        self._went_on_at = at
        self._utterance = self._evidence = None

    def turn_over(self) -> None:
        """What was said has become a turn; what comes is another, unless that turn is `reopened`."""
        self._patience.ended()
        self._committed = self._utterance, self._evidence
        self.dismissed()

    def reopened(self) -> None:
        """The turn was not over: the user had gone on before anything of the reply was heard."""
        self._learn(*self._committed, self._went_on_at)

    def dismissed(self) -> None:
        """What was said is nothing that waits for more."""
        self._utterance = self._evidence = None
        self._partial = StablePartial()

    def _learn(self, utterance: Utterance | None, evidence: Evidence | None, went_on_at: float) -> None:
        if utterance is not None and evidence is not None:
            self._patience.went_on(went_on_at - utterance.ended_at, evidence)


def _punctuated(text: str) -> bool:
    return text.endswith((".", "?", "!")) and not _trails_off(text)


def _trails_off(text: str) -> bool:
    return text.endswith(("..", "…", "-", "–", "—"))
