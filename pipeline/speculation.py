"""What is prepared on the chance that it will be wanted, and what it has cost when it was not."""

from dataclasses import dataclass, field

from pipeline.answer import Answer
from pipeline.asr.partials import equivalent
from pipeline.events import Span, TurnTrace


@dataclass(slots=True)
class _Waste:
    """Of the turn that is being said."""

    spans: list[Span] = field(default_factory=list)
    begun: int = 0
    dropped: int = 0
    tokens: int = 0
    speech: float = 0.0


class Speculation:
    """One conversation's. A *draft* is an answer begun while the user still speaks; there is one at most."""

    def __init__(self, drafts_a_turn: int) -> None:
        """`drafts_a_turn`: answers that may be begun for one turn before it is over."""
        self._most = drafts_a_turn
        self._draft: Answer | None = None
        self._waste = _Waste()

    @property
    def may_begin(self) -> bool:
        """Whether the budget allows another answer."""
        return self._waste.begun < self._most

    def begun(self) -> None:
        """An answer was begun before its turn was over."""
        self._waste.begun += 1

    def hold_draft(self, draft: Answer) -> None:
        """Keep a draft until its words are known for certain."""
        self.drop_draft()
        self.begun()
        self._draft = draft

    def drafted(self, text: str) -> bool:
        """Whether there is a draft for these words."""
        return self._draft is not None and equivalent(self._draft.trace.user_text, text)

    def take(self, text: str) -> Answer | None:
        """The draft for these words; one for other words is dropped."""
        if not self.drafted(text):
            self.drop_draft()
        draft, self._draft = self._draft, None
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
        waste, self._waste = self._waste, _Waste()
        trace.spans[:0] = waste.spans
        trace.cancels += waste.dropped
        trace.wasted_tokens += waste.tokens
        trace.wasted_speech += waste.speech

    def forget(self) -> None:
        """It was no turn."""
        self.drop_draft()
        self._waste = _Waste()
