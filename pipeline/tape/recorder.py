"""One call's recorder: notes what comes from outside, what the client is told, and what the stages answer."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pipeline.clock import Clock
from pipeline.errors import StageError
from pipeline.events import Pcm
from pipeline.headroom import Headroom
from pipeline.stages import Stages
from pipeline.tape import entries, values
from pipeline.tape import stages as taped
from pipeline.tape.entries import DONE, DROPPED, Call, Piece
from pipeline.tape.values import Form, Question
from pipeline.tape.writer import TapeWriter
from pipeline.webrtc import rtvi
from pipeline.webrtc.playout import FRAME

T = TypeVar("T")

MESSAGES: Sequence[type[Any]] = (
    *(rtvi.ClientReady, rtvi.SendText, rtvi.TrackStatus, rtvi.PlayoutReport),
    *(rtvi.PushToTalk, rtvi.Interrupt, rtvi.DisconnectBot),
)
"""What a conversation depends on of what clients send. The rest is for the timeline."""


class Recorder:
    """Told on the event loop, at the moment at which it happens. As a `Way`, it asks the stage."""

    def __init__(self, tape: TapeWriter, clock: Clock) -> None:
        self._tape = tape
        self._clock = clock
        self._peer: object = None

    def stages(self, stages: Stages) -> Stages:
        """The same, on tape."""
        lines, turn_end = stages.lines, stages.turn_end
        for line in (lines.apology, lines.not_understood, lines.greeting, lines.filler):
            if line is not None:  # spoken before the call
                with self._asking(values.of_clause(line.text)) as answer:
                    answer.came(values.CHUNK.write(line))
        return replace(
            stages,
            transcriber=taped.TapedTranscriber(self, stages.transcriber),
            prompts=taped.TapedPrompts(self, stages.prompts),
            language_model=taped.TapedLanguageModel(self, stages.language_model, self._clock),
            synthesizer=taped.TapedSynthesizer(self, stages.synthesizer),
            turn_end=None if turn_end is None else taped.TapedTurnEnd(self, turn_end),
            headroom=taped.TapedHeadroom(self, stages.headroom),
        )

    # ── the wire ───────────────────────────────────────────────────────────────────────────────

    def answered(self, peer: object) -> None:
        self._peer = peer
        self._tape.put(entries.Answered(self._clock.now()))

    def closed(self, peer: object) -> None:
        if peer is self._peer:  # else another has taken its place
            self._tape.put(entries.Closed(self._clock.now()))

    def sound(self, pcm: Pcm | None, captured: float) -> None:
        samples = None if pcm is None else len(pcm)
        self._tape.put(entries.Sound(self._clock.now(), captured, samples), pcm)

    def frame(self, pts: int) -> None:
        self._tape.put(entries.Frame(self._clock.now(), pts // FRAME))

    def message(self, message: Any, rtp_origin: int | None) -> None:
        if type(message) in MESSAGES:
            name, fields = type(message).__name__, asdict(message)
            self._tape.put(entries.Message(self._clock.now(), name, fields, rtp_origin))

    def told(self, text: str) -> None:
        self._tape.put(entries.Told(self._clock.now(), text))

    def ended(self, fault: str | None) -> None:
        self._tape.put(entries.Ended(self._clock.now(), fault))

    # ── Way ────────────────────────────────────────────────────────────────────────────────────

    async def stream(
        self, question: Question, form: Form[T], stage: Callable[[], AsyncGenerator[T, None]] | None
    ) -> AsyncGenerator[T, None]:
        assert stage is not None
        with self._asking(question) as answer:
            async with aclosing(stage()) as pieces:
                async for piece in pieces:
                    answer.came(form.write(piece))
                    yield piece
                    answer.waited_for()

    def free(self, headroom: Headroom | None) -> bool:
        assert headroom is not None
        with self._asking(values.HEADROOM) as answer:
            answer.came(headroom.free)
        return bool(answer.pieces[0].value)

    @contextmanager
    def _asking(self, question: Question) -> Iterator["_Answer"]:
        """Until the answer is complete, or nobody waits for it."""
        answer = _Answer(self._clock)
        outcome = DROPPED
        try:
            yield answer
            outcome = DONE
        except StageError as error:
            outcome = error.code
            raise
        finally:
            self._tape.put(answer.call(question, outcome))


class _Answer:
    """What has come of one."""

    def __init__(self, clock: Clock) -> None:
        self.pieces: list[Piece] = []
        self._clock = clock
        self._asked = self._waited_since = clock.now()

    def came(self, value: Any) -> None:
        waited_since, self._waited_since = self._waited_since, self._clock.now()
        self.pieces.append(Piece(waited_since, self._waited_since, value))

    def waited_for(self) -> None:
        """Whoever asked wants the next piece."""
        self._waited_since = self._clock.now()

    def call(self, question: Question, outcome: str) -> Call:
        return Call(
            asked=self._asked,
            stage=question.asked,
            key=question.key,
            about=question.about,
            pieces=self.pieces,
            waited_since=self._waited_since,
            ended=self._clock.now(),
            outcome=outcome,
        )
