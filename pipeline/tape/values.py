"""Questions to stages, and how a tape holds their answers."""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from pipeline.events import (
    HEARING_RATE,
    WIRE_RATE,
    Message,
    Pcm,
    Prompt,
    PromptSection,
    Samples,
    SpeechChunk,
    TextDelta,
    Transcript,
    Usage,
    Word,
)
from pipeline.tape.entries import Asked

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """The same question has the same key; `about` is for people."""

    asked: Asked
    key: str
    about: str


HEADROOM = Question(Asked.HEADROOM, "", "the processor")


def of_sound(asked: Asked, samples: Samples) -> Question:
    """Known by its length, and by the time: computed by another machine, or after another echo, the same
    utterance is not the same to the last bit."""
    return Question(asked, str(len(samples)), f"{len(samples) / HEARING_RATE:.2f} s of speech")


def of_turn(history: Sequence[Message], turn: str) -> Question:
    said = json.dumps([*([message.role, message.text] for message in history), turn])
    return Question(Asked.PROMPTS, hashlib.sha256(said.encode()).hexdigest(), f'"{turn}"')


def of_prompt(asked: Asked, prompt: Prompt) -> Question:
    turn = prompt.messages[-1].text if prompt.messages else ""
    return Question(asked, prompt.digest, f'"{turn}"')


def of_clause(text: str) -> Question:
    words = " ".join(text.split())
    return Question(Asked.SYNTHESIZER, words, f'"{words}"')


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How a piece of an answer stands on a tape, and how it is made of that again."""

    write: Callable[[T], Any]
    read: Callable[[Any], T]


NUMBER: Form[float] = Form(float, float)
PERHAPS_NUMBER: Form[float | None] = Form(lambda number: number, lambda value: value)
TRANSCRIPT: Form[Transcript] = Form(asdict, lambda value: Transcript(**value))


def _delta(value: Any) -> TextDelta:
    usage = value["usage"]
    return TextDelta(value["text"], value["at"], None if usage is None else Usage(**usage))


DELTA: Form[TextDelta] = Form(asdict, _delta)


def prompt_form(messages: Sequence[Message]) -> Form[Prompt]:
    """Prompts stand on a tape without their messages: with the instructions, these are what was said."""

    def write(prompt: Prompt) -> Any:
        sections = [asdict(section) for section in prompt.sections]
        return {"sections": sections, "digest": prompt.digest, "max_output_tokens": prompt.max_output_tokens}

    def read(value: Any) -> Prompt:
        sections = tuple(PromptSection(**section) for section in value["sections"])
        return Prompt(messages, sections, value["digest"], value["max_output_tokens"])

    return Form(write, read)


def _chunk_value(chunk: SpeechChunk) -> Any:
    words = [[word.text, word.start, word.end] for word in chunk.words]
    return {"text": chunk.text, "pcm": chunk.pcm, "words": words, "aligned": chunk.aligned}


def _chunk(value: Any) -> SpeechChunk:
    words = tuple(Word(*word) for word in value["words"])
    pcm = np.frombuffer(base64.b64decode(value["pcm"]), np.int16)
    return SpeechChunk(value["text"], pcm, WIRE_RATE, (), words, value["aligned"])


CHUNK: Form[SpeechChunk] = Form(_chunk_value, _chunk)
"""Without phonemes: only a face needs them."""


def as_json(value: object) -> str:
    """For `json.dumps`: sound, on the thread that writes."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a tape cannot hold a {type(value).__name__}")
    pcm: Pcm = value
    return base64.b64encode(pcm.tobytes()).decode()
