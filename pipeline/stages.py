"""What a conversation is made of: the stages that services build and a session puts to work."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.asr.ear import Ear
from pipeline.asr.patience import PatienceSettings
from pipeline.errors import NotUnderstoodError, StageError
from pipeline.events import (
    Face,
    LanguageModel,
    Performer,
    PromptWriter,
    SpeechChunk,
    Synthesizer,
    Transcriber,
    TurnEndDetector,
)
from pipeline.headroom import Headroom
from pipeline.tts.clauses import GROWING_LIMITS, SHARED_LIMITS, ClauseLimits


class Saying(StrEnum):
    """What the agent may be saying."""

    GREETING = "greeting"
    REPLY = "reply"
    APOLOGY = "apology"


@dataclass(frozen=True, slots=True)
class Lines:
    """What the agent says of its own accord, spoken before anybody needs it. None: says nothing."""

    apology: SpeechChunk
    """A stage failed."""
    not_understood: SpeechChunk | None = None
    """Somebody spoke and no words could be made out."""
    greeting: SpeechChunk | None = None
    filler: SpeechChunk | None = None
    """The reply takes long."""

    def after(self, error: StageError) -> SpeechChunk | None:
        """What to say when a turn failed like this."""
        return self.not_understood if isinstance(error, NotUnderstoodError) else self.apology


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a conversation is held. Times in seconds."""

    patience: PatienceSettings = field(default_factory=PatienceSettings)
    speculate: bool = True
    """Prepare the reply before it is certain that the user is done."""
    drafts_a_turn: int = 6
    """Replies begun for one turn before the next waits until the turn is over."""
    warm: bool = True
    """Have the engine read ahead between turns."""
    filler_after: float = 1.5
    """From the end of a turn to the filler, when no sound of the reply is there by then."""
    least_voiced: float = 0.4
    """Speech without words that is shorter is taken for a noise and not asked about."""
    uninterruptible: frozenset[Saying] = frozenset()
    clauses: Sequence[ClauseLimits] = GROWING_LIMITS
    """Where a reply is cut to be spoken."""
    shared_clauses: Sequence[ClauseLimits] = SHARED_LIMITS
    """The same while another conversation is in mid-turn."""


@dataclass(frozen=True, slots=True)
class Stages:
    """What a session is made of. Ear and performer keep a stream's memory and are its own."""

    ear: Ear
    transcriber: Transcriber
    prompts: PromptWriter
    language_model: LanguageModel
    synthesizer: Synthesizer
    performer: Performer
    face: Face
    render_executor: Executor
    lines: Lines
    turn_end: TurnEndDetector | None = None
    headroom: Headroom = field(default_factory=Headroom)
    conduct: Conduct = field(default_factory=Conduct)
    language: str = "en"
    """ISO 639 code of what is spoken."""
