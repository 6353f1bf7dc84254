"""The answer that is heard and seen: played, announced, and on record when it is over.

One at a time. A turn ends in exactly one `close`, whatever happens to it.
"""

from collections.abc import Callable

from pipeline.answer import Answer
from pipeline.clock import Clock
from pipeline.conversation import Conversation, Exchange
from pipeline.events import Message, SpeechChunk, Timeline, TurnInput
from pipeline.stages import Stages
from pipeline.webrtc.announcer import Announcer
from pipeline.webrtc.heard import HeardPosition
from pipeline.webrtc.playout import Playout
from pipeline.webrtc.reply import HeardWord, Reply


class Delivery:
    """One conversation's. It listens to the playout and to the answer it delivers."""

    def __init__(
        self,
        stages: Stages,
        clock: Clock,
        announcer: Announcer,
        timeline: Timeline,
        rtp_origin: Callable[[], int | None],
        *,
        on_start: Callable[[], None],
        on_word: Callable[[str], None],
    ) -> None:
        """`on_start`: a reply's first sample goes out; `on_word`: a word's does."""
        self.playout = Playout(clock, self, stages.ear.played)
        self.position = HeardPosition(rtp_origin)
        self.current: Answer | None = None
        self._stages = stages
        self._clock = clock
        self._announcer = announcer
        self._timeline = timeline
        self._on_start = on_start
        self._on_word = on_word
        self._conversation = Conversation()

    def history(self) -> list[Message]:
        """What was said so far and, of the replies, heard."""
        return self._conversation.history()

    @property
    def unheard(self) -> Answer | None:
        """The answer to a spoken turn of which nothing was heard yet: what comes may go on with that turn."""
        answer = self.current
        if answer is None or answer.trace.input is not TurnInput.VOICE or answer.reply.started.is_set():
            return None
        return answer

    @property
    def playing(self) -> str | None:
        """Id of the turn whose reply goes out."""
        answer = self.current
        return answer.trace.turn_id if answer is not None and answer.is_turn else None

    def begin(self, answer: Answer) -> None:
        """From here on, this answer is what is played and seen."""
        self.current = answer
        self._stages.performer.clear()
        self._announcer.reply_begins()
        self.playout.play(answer.reply)
        self.position.begin()
        answer.commit(self)

    def withdraw(self) -> Answer:
        """Nothing was heard of the answer and its turn is not over: it leaves no trace of its own."""
        answer = self._cut_short()
        self._announcer.reopened()
        return answer

    def hold(self) -> None:
        """The user speaks: stand still."""
        self.playout.hold()
        self._timeline.held(True)

    def resume(self) -> None:
        """It was nothing: go on."""
        self.playout.resume()
        self._timeline.held(False)

    def interrupt(self, by: float | None) -> Answer:
        """The user has the floor: empty the queue, close the mouth, keep what was heard. `by`: when their
        voice set in; None when it was no voice."""
        heard = self.position.heard(self._clock.now())
        answer = self._cut_short()
        answer.trace.cancels += 1
        answer.trace.interrupted_by = by
        self._conclude(answer, interrupted=True, heard=heard)
        return answer

    def close(self, answer: Answer, failed: str | None = None) -> None:
        """The turn is over: its reply was played to its end, or the call `failed` it."""
        self._leave()
        self._conclude(answer, failed=failed)

    def _conclude(
        self,
        answer: Answer,
        *,
        interrupted: bool = False,
        heard: float | None = None,
        failed: str | None = None,
    ) -> None:
        """The turn goes on record; `heard`: up to which audio position its reply was, None: all of it."""
        trace = answer.trace
        if answer.reply.started.is_set():
            self._announcer.stopped_speaking(interrupted=interrupted)
        elif trace.input is TurnInput.VOICE:
            self._stages.ear.close_utterance()
        trace.ended_at = self._clock.now()
        if not answer.is_turn:
            return
        trace.interrupted = interrupted
        trace.failed = trace.failed or failed
        trace.heard_text = answer.reply.heard_text(heard)
        self._conversation.add(Exchange(trace.user_text, trace.heard_text))
        self._announcer.turn(self._timeline.turn_over(trace))

    def _leave(self) -> None:
        """Nothing of the present answer is played or seen from here on."""
        self.current = None
        self.playout.stop()
        self._timeline.held(False)
        self._stages.performer.clear()

    def _cut_short(self) -> Answer:
        answer = self.current
        assert answer is not None
        self._leave()
        if not answer.composed:
            self._announcer.composed()
        answer.abandon()
        return answer

    # ── PlayoutListener ────────────────────────────────────────────────────────────────────────

    def reply_started(self, reply: Reply) -> None:
        assert self.current is not None
        # Until here whoever went on speaking went on with the same turn.
        self._stages.ear.close_utterance()
        self.current.trace.first_sound_at = self._clock.now()
        self._announcer.started_speaking()
        self._on_start()

    def word_started(self, reply: Reply, word: HeardWord) -> None:
        assert self.current is not None
        self._on_word(word.text)
        if word.own and self.current.is_turn and self.current.trace.first_audio_at is None:
            self.current.trace.first_audio_at = self._clock.now()
        self._announcer.word(word)

    # ── AnswerListener ─────────────────────────────────────────────────────────────────────────

    def answer_text(self, delta: str) -> None:
        self._announcer.text(delta)

    def answer_clause(self, text: str, at: float) -> None:
        self._announcer.segment(text, at)

    def answer_chunk(self, chunk: SpeechChunk, at: float) -> None:
        self._stages.performer.cue(chunk, at)

    def answer_composed(self) -> None:
        self._announcer.composed()
