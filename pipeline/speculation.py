"""What is prepared on the chance that it will be wanted, and what it has cost when it was not."""

import asyncio
import logging
from dataclasses import dataclass, field

from pipeline.answer import Answer
from pipeline.asr.partials import equivalent
from pipeline.composer import Composer
from pipeline.errors import StageError
from pipeline.events import Prompt, Span, TurnInput, TurnTrace, Utterance
from pipeline.listening import Listening
from pipeline.stages import Stages
from pipeline.turn_taking import TurnTaking, User

_log = logging.getLogger(__name__)


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
        self._draft: Answer | None = None
        self._waste = _Waste()

    @property
    def may_begin(self) -> bool:
        """Whether another answer may be begun before its turn is over."""
        conduct = self._stages.conduct
        return conduct.speculate and self._waste.begun < conduct.drafts_a_turn

    def begun(self) -> None:
        """An answer was begun before its turn was over."""
        self._waste.begun += 1

    async def glimpse(self, utterance: Utterance) -> None:
        """Read along while the user speaks; where that seems to be all, begin on the reply."""
        if not self._stages.headroom.free:
            return
        try:
            transcript = await self._listening.glimpse(utterance)
            if transcript is None or not transcript.text or not self._speaking:
                return
            self._listening.show(transcript.text)
            if not self.may_begin or self._floor.replying or self._drafted(transcript.text):
                return
            self.drop_draft()  # also because the engine cannot read beside it
            draft = self._composer.new_answer(
                self._floor.revision, TurnInput.VOICE, utterance.started_at, transcript.text
            )
            prompt = await self._composer.write_prompt(draft)
            complete = await self._listening.likely_complete(prompt, transcript)
        except StageError as error:
            _log.info("a glimpse failed: %s", error)
            return
        if complete and self._speaking and self.may_begin:
            self.drop_draft()
            self.begun()
            draft.composing = self._scope.create_task(self._compose(draft, prompt))
            self._draft = draft

    @property
    def _speaking(self) -> bool:
        return self._floor.user is User.SPEAKING

    async def _compose(self, draft: Answer, prompt: Prompt) -> None:
        try:
            await self._composer.compose(draft, prompt)
        except StageError as error:
            draft.failure = error  # the turn's only if this becomes one

    def _drafted(self, text: str) -> bool:
        """Whether there is a draft for these words."""
        return self._draft is not None and equivalent(self._draft.trace.user_text, text)

    def take(self, answer: Answer) -> Answer:
        """The draft for the same words in the answer's place; a draft for other words is dropped."""
        if not self._drafted(answer.trace.user_text):
            self.drop_draft()
        draft, self._draft = self._draft, None
        if draft is None:
            return answer
        draft.take_over(answer)
        return draft

    def drop_draft(self) -> None:
        if self._draft is not None:
            draft, self._draft = self._draft, None
            draft.abandon()
            self.wasted(draft)

    def wasted(self, answer: Answer) -> None:
        """An answer of this turn was dropped."""
        trace, waste = answer.trace, self._waste
        waste.spans += trace.spans
        waste.dropped += answer.begun
        waste.tokens += len(trace.token_times)
        waste.speech += answer.synthesised

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
