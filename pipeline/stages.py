"""What a conversation is made of: the stages that services build and a session puts to work."""

from concurrent.futures import Executor
from dataclasses import dataclass

from pipeline.asr.ear import Ear
from pipeline.events import (
    Face,
    LanguageModel,
    Performer,
    PromptWriter,
    SpeechChunk,
    Synthesizer,
    Transcriber,
)


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
    apology: SpeechChunk
    greeting: SpeechChunk | None = None
    language: str = "en"
    """ISO 639 code of what is spoken."""
