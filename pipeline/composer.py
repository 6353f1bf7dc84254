"""Makes answers: prompt, language model and voice put together for one conversation."""

import logging
import uuid
from collections.abc import Callable, Sequence

from pipeline.answer import Answer
from pipeline.clock import Clock
from pipeline.errors import LanguageModelError
from pipeline.events import Message, Prompt, Span, Stage, TurnInput, TurnTrace
from pipeline.stages import Stages
from pipeline.tts.clauses import ClauseCutter

_log = logging.getLogger(__name__)


class Composer:
    """One conversation's; `history` is what was said so far."""

    def __init__(
        self, session_id: str, stages: Stages, clock: Clock, history: Callable[[], Sequence[Message]]
    ) -> None:
        self._session_id = session_id
        self._stages = stages
        self._clock = clock
        self._history = history

    def new_answer(
        self, revision: int, kind: TurnInput, started_at: float, words: str = "", *, is_turn: bool = True
    ) -> Answer:
        """An empty one to the user's words. `is_turn` False: for what the agent says of its own accord."""
        turn_id = uuid.uuid4().hex[:12]
        trace = TurnTrace(turn_id, self._session_id, kind, started_at, user_text=words)
        conduct = self._stages.conduct
        limits = conduct.clauses if self._stages.headroom.free else conduct.shared_clauses
        cutter = ClauseCutter(self._stages.language, limits)
        return Answer(revision, trace, self._clock, cutter, is_turn=is_turn)

    async def write_prompt(self, answer: Answer) -> Prompt:
        """For the user's words in the answer's trace, where it is kept. Raises LanguageModelError."""
        started = self._clock.now()
        prompt = await self._stages.prompts.write(self._history(), answer.trace.user_text)
        answer.trace.spans.append(Span(Stage.ROUTE, started, self._clock.now(), answer.revision))
        answer.trace.prompt = prompt
        return prompt

    async def compose(self, answer: Answer, prompt: Prompt) -> None:
        """Think it and voice it. Raises StageError."""
        await answer.compose(prompt, self._stages.language_model, self._stages.synthesizer)

    async def warm(self) -> None:
        """Have the engine read what the next prompt begins with."""
        try:
            opening = await self._stages.prompts.opening(self._history())
            await self._stages.language_model.warm(opening)
        except LanguageModelError as error:
            _log.info("session %s: the engine could not be warmed: %s", self._session_id, error)
