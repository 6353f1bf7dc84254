"""What is prepared on the chance that it will be wanted, and what it has cost when it was not."""

import asyncio
import logging
from dataclasses import dataclass, field

from pipeline.answer import Answer
from pipeline.asr.partials import equivalent
from pipeline.composer import Composer
from pipeline.errors import StageError
from pipeline.events import Prompt, Span, Transcript, TurnInput, TurnTrace, Utterance
from pipeline.listening import Listening
from pipeline.stages import Stages
from pipeline.turn_taking import TurnTaking, User

_log = logging.getLogger(__name__)

_NEARLY_ALL = 0.16
"""Seconds. What was heard up to this long before a pause is answered as if it were all until that is known:
a last word's sound fades before it ends. Of 44 synthetic sentences 0.1 s before their end gave 66 % the same
transcript, 0.16 s 45 %; of 5 human ones all."""


@dataclass(slots=True)
class _Draft:
    """An answer begun while the user still speaks."""

    answer: Answer
    until: float
    """When the speech ended that it answers."""
    complete: bool = False
    """That seemed to be all before the user fell silent."""


@dataclass(slots=True)
class _Waste:
    """Of the turn that is being said."""

    spans: list[Span] = field(default_factory=list)
    begun: int = 0
    dropped: int = 0
    tokens: int = 0
    speech: float = 0.0


class Speculation:
    """One conversation's budget and its *draft*: an answer begun while the user still speaks."""

    def __init__(
        self,
        stages: Stages,
        composer: Composer,
        listening: Listening,
        turn_taking: TurnTaking,
        scope: asyncio.TaskGroup,
    ) -> None:
        self._stages = stages
        self._composer = composer
        self._listening = listening
        self._floor = turn_taking
        self._scope = scope
        self._draft: _Draft | None = None
        self._paused_at: float | None = None
        """When the user's speech ended, while they pause."""
        self._taken = False
        """What is to be answered in this pause is known."""
        self._waste = _Waste()

    @property
    def may_begin(self) -> bool:
        """Whether another answer may be begun before its turn is over."""
        conduct = self._stages.conduct
        return conduct.speculate and self._waste.begun < conduct.drafts_a_turn

    async def glimpse(self, utterance: Utterance) -> None:
        """Read along while the user speaks, and begin on the reply where that seems to be all."""
        if not self._stages.headroom.free:
            return
        try:
            transcript = await self._listening.glimpse(utterance)
            if transcript is None or not transcript.text or not self._in_turn:
                return
            if self._floor.replying:
                return  # perhaps a listener's sound, or our own voice
            self._listening.show(transcript.text)
            if not self.may_begin:
                return
            if (drafted := self._drafted(transcript.text)) is not None:
                drafted.until = utterance.ended_at
                self._want()
                return
            self.drop_draft()  # also because the engine cannot read beside it
            answer = self._composer.new_answer(
                self._floor.revision, TurnInput.VOICE, utterance.started_at, transcript.text
            )
            prompt = await self._composer.write_prompt(answer)
        except StageError as error:
            _log.info("a glimpse failed: %s", error)
            return
        if self._taken or self._draft is not None or not self._in_turn:
            return
        self._draft = _Draft(answer, utterance.ended_at)
        self._want()
        answer.composing = self._scope.create_task(self._prepare(self._draft, prompt, transcript))

    @property
    def _in_turn(self) -> bool:
        return self._floor.user is not User.SILENT

    def paused(self, utterance: Utterance) -> None:
        """The user fell silent; what was heard of the utterance so far may be all of it."""
        self._paused_at = utterance.ended_at
        self._want()

    def went_on(self) -> None:
        """The user spoke. A draft that only a pause had made likely is of no use; one for words that seemed
        to be all may have met a gap within the last of them."""
        self._paused_at, self._taken = None, False
        if self._draft is not None and not self._draft.complete:
            self.drop_draft()

    def _want(self) -> None:
        """Where a pause came right after what the draft answers, that was probably all."""
        draft, paused_at = self._draft, self._paused_at
        if draft is not None and paused_at is not None and paused_at - draft.until <= _NEARLY_ALL:
            draft.answer.wanted.set()

    async def _prepare(self, draft: _Draft, prompt: Prompt, transcript: Transcript) -> None:
        answer = draft.answer
        try:
            if not answer.wanted.is_set():
                words = answer.sentence_ends = await self._stages.language_model.read(prompt)
                if words is not None and self._listening.likely_complete(transcript, words):
                    draft.complete = True
                    answer.wanted.set()
            await answer.wanted.wait()
            await self._compose(answer, prompt)
        except StageError as error:
            answer.failure = error  # the turn's only if this becomes one

    async def compose(self, answer: Answer, prompt: Prompt) -> None:
        """Make the answer, or wait for what was begun on it before. Raises StageError."""
        if answer.composing is None:
            await self._compose(answer, prompt)
        else:
            await answer.composing
        if answer.failure is not None:
            raise answer.failure

    async def _compose(self, answer: Answer, prompt: Prompt) -> None:
        if not answer.committed.is_set() and not self.may_begin:
            answer.opened.set()
            await answer.committed.wait()
        if not answer.committed.is_set():  # else it is no guess, and the budget is the next turn's already
            self._waste.begun += 1
        await self._composer.compose(answer, prompt)

    def _drafted(self, text: str) -> _Draft | None:
        """The draft for these words."""
        draft = self._draft
        return draft if draft is not None and equivalent(draft.answer.trace.user_text, text) else None

    def take(self, answer: Answer) -> Answer:
        """The draft for the same words in the answer's place; a draft for other words is dropped."""
        self._taken = True
        draft = self._drafted(answer.trace.user_text)
        if draft is None:
            self.drop_draft()
            return answer
        self._draft = None
        draft.answer.take_over(answer)
        return draft.answer

    def drop_draft(self) -> None:
        if self._draft is not None:
            draft, self._draft = self._draft, None
            draft.answer.abandon()
            self.wasted(draft.answer)

    def wasted(self, answer: Answer) -> None:
        """An answer of this turn was dropped, with what had been dropped before it was committed."""
        trace, waste = answer.trace, self._waste
        waste.spans += trace.spans
        waste.dropped += answer.begun + trace.cancels
        waste.tokens += len(trace.token_times) + trace.wasted_tokens
        waste.speech += answer.synthesised + trace.wasted_speech

    def settle(self, trace: TurnTrace) -> None:
        """The turn is over; its trace takes what it cost."""
        self.drop_draft()
        waste, self._waste = self._waste, _Waste()
        trace.spans[:0] = waste.spans
        trace.cancels += waste.dropped
        trace.wasted_tokens += waste.tokens
        trace.wasted_speech += waste.speech

    def forget(self) -> None:
        """It was no turn."""
        self.drop_draft()
        self._waste = _Waste()
