"""Every message and Protocol that stages exchange, in the order a turn passes through them.

Stages never import each other: they take and return what is defined here; `dialogue.py` puts them
together, and `services/stack.py` makes them. Times are monotonic seconds of `clock.py` unless a field says
otherwise.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]
"""Mono audio in [-1, 1], shape (n,)."""

Pcm = npt.NDArray[np.int16]
"""Mono 16-bit audio, shape (n,)."""

Image = npt.NDArray[np.uint8]
"""BGR picture, shape (height, width, 3)."""

HEARING_RATE = 16_000
"""Hz of everything that speech recognition works on."""

WIRE_RATE = 48_000
"""Hz of everything that goes over WebRTC."""


# ── microphone → pipeline.asr ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Stirring:
    """A sound that may become speech."""

    at: float
    """Estimated time of its first voiced sample."""


@dataclass(frozen=True, slots=True)
class Stilled:
    """What stirred ended before it was speech."""

    at: float


@dataclass(frozen=True, slots=True)
class SpeechOnset:
    """The user began, or went on, to speak."""

    at: float
    """Estimated time of the first voiced sample."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """The user's speech so far, with pre-roll."""

    samples: Samples
    """At HEARING_RATE."""
    started_at: float
    """Estimated time of the first voiced sample."""
    ended_at: float
    """Estimated time of the last voiced sample: the live estimate of *user speech end*. While they still
    speak, of the newest sample."""
    voiced: float = 0.0
    """Seconds of it that were speech by the voice detector."""


@dataclass(frozen=True, slots=True)
class SpeechProgress:
    """The user is speaking; this much was said so far."""

    at: float
    utterance: Utterance


@dataclass(frozen=True, slots=True)
class SpeechPause:
    """Silence was seen for long enough to start work on the speech before it."""

    at: float
    """When it was decided, not when speech ended (that is `utterance.ended_at`)."""
    utterance: Utterance


@dataclass(frozen=True, slots=True)
class SpeechEnd:
    """Silence lasted past the endpoint: the user's turn is over."""

    at: float


Hearing = Stirring | Stilled | SpeechOnset | SpeechProgress | SpeechPause | SpeechEnd


# ── pipeline.asr → the conversation ────────────────────────────────────────────────────────────


class TurnEndDetector(Protocol):
    async def finished(self, samples: Samples) -> float:
        """Probability, from its sound alone, that who said this (mono at HEARING_RATE) is done."""
        ...


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said. `text` is empty when nothing was; `rejected` then says which guard decided."""

    text: str
    language: str = "en"
    no_speech_probability: float | None = None
    mean_log_probability: float | None = None
    compression_ratio: float | None = None
    rejected: str | None = None


class Transcriber(Protocol):
    async def transcribe(self, samples: Samples) -> Transcript:
        """Text of mono audio at HEARING_RATE. Raises TranscriptionError."""
        ...


# ── the conversation → pipeline.llm ────────────────────────────────────────────────────────────


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class PromptSection:
    """One authorised part of a prompt. Its digest is the same on every route."""

    name: str
    """instructions, tools, evidence, history or turn."""
    digest: str
    """SHA-256 of the section's text, hex."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """One turn's request to a language model: what the sections came to, in chat form."""

    messages: Sequence[Message]
    sections: Sequence[PromptSection]
    digest: str
    """SHA-256 over the sections' names and digests, hex."""
    max_output_tokens: int

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the engine says it did. None where it does not say."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    handed_tokens: int | None = None
    """Of a split engine: whose state was handed over; `cached_tokens` near to it proves that it was used."""
    kv_bytes: int | None = None
    kv_seconds: float | None = None
    queue_seconds: float | None = None
    """Waited for room in the engine."""
    pattern: str | None = None
    """How the engines divided the work, where turns can differ in that."""
    fallback_from: str | None = None
    """The pattern of the route that failed, where another took its place."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply as the engine streamed it; the last one carries `usage`."""

    text: str
    at: float
    usage: Usage | None = None
    read_at: float | None = None
    """Of the first piece of a split engine's: when its prompt was read and its state set out."""


class LanguageModel(Protocol):
    def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        """The reply to a prompt, piece by piece. Raises LanguageModelError.

        Use it under `contextlib.aclosing`: closing it early closes the engine's stream, and the
        engine stops computing.
        """
        ...

    async def warm(self, prompt: Prompt) -> None:
        """Have the engine read a prompt ahead of one that begins like it. Raises LanguageModelError."""
        ...

    async def read(self, prompt: Prompt) -> float | None:
        """Have the engine read a turn that may go on, and say how likely a sentence ends here.

        None when it cannot say, for whatever reason: this is a hint and nothing waits for it.
        """
        ...


class PromptWriter(Protocol):
    async def opening(self, history: Sequence[Message]) -> Prompt:
        """What the next prompt of the conversation begins with."""
        ...

    async def write(self, history: Sequence[Message], turn: str) -> Prompt:
        """The prompt for a turn, after `history`. Raises LanguageModelError."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage a reply may draw on."""

    source: str
    text: str
    score: float


class EvidenceSource(Protocol):
    async def find(self, query: str, *, tenant: str, role: str) -> Sequence[Evidence]:
        """Passages for a query that this tenant and role may see, best first."""
        ...


# ── pipeline.llm → pipeline.tts → playout ──────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Phoneme:
    """One IPA symbol as espeak writes it; stress marks and pauses are symbols too."""

    symbol: str
    start: float
    """Seconds from the start of the chunk."""
    end: float


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it stands in the text (punctuation attached), and when it is spoken."""

    text: str
    start: float
    """Seconds from the start of the chunk."""
    end: float


@dataclass(frozen=True, slots=True)
class SpeechChunk:
    """A clause, or some whole words of it, spoken. Phonemes and words lie inside the audio, in order."""

    text: str
    pcm: Pcm
    sample_rate: int
    phonemes: Sequence[Phoneme]
    words: Sequence[Word]
    aligned: bool = True
    """False when the voice gave no true alignment and times were spread evenly (counted)."""

    @property
    def duration(self) -> float:
        """Seconds."""
        return len(self.pcm) / self.sample_rate


class Synthesizer(Protocol):
    def stream(self, text: str) -> AsyncGenerator[SpeechChunk, None]:
        """A clause as speech at WIRE_RATE, in pieces of whole words that adjoin without a seam.

        Their texts, joined by spaces, are the clause's words. Raises SynthesisError. Use it under
        `contextlib.aclosing`: closing it early stops the work after the current piece.
        """
        ...


# ── playout position → pipeline.render ─────────────────────────────────────────────────────────


class Mood(StrEnum):
    """What the avatar visibly does."""

    IDLE = "idle"
    LISTENING = "listening"
    THINKING = "thinking"
    SPEAKING = "speaking"


@dataclass(frozen=True, slots=True)
class Pose:
    """Everything a face needs to be drawn; a face is a function of this and nothing else."""

    # mouth
    jaw: float = 0.0
    """0 closed … 1 as open as an open vowel."""
    width: float = 0.0
    """-1 rounded and narrow … 1 spread."""
    press: float = 0.0
    """1 lips pressed together, as for p, b, m."""
    tuck: float = 0.0
    """1 lower lip under the upper teeth, as for f, v."""
    tongue: float = 0.0
    """1 tongue tip visible between or behind the teeth, as for th, l."""
    # the rest of the face
    smile: float = 0.0
    blink: float = 0.0
    """0 eyes open … 1 shut."""
    brows: float = 0.0
    """-1 drawn together … 1 raised."""
    gaze_x: float = 0.0
    gaze_y: float = 0.0
    """-1 … 1; positive looks to the picture's right, and down."""
    # the head
    turn: float = 0.0
    nod: float = 0.0
    tilt: float = 0.0
    """-1 … 1; small numbers look alive, large ones do not."""
    breath: float = 0.0
    """0 … 1, chest and shoulders."""


class Face(Protocol):
    """A face is a function: the same pose gives the same picture."""

    width: int
    height: int

    def draw(self, pose: Pose) -> Image: ...


class Performer(Protocol):
    """Turns what is being said, and how the conversation stands, into poses. One per session."""

    def cue(self, chunk: SpeechChunk, at: float) -> None:
        """`chunk` will be heard from audio position `at` (seconds of the reply) on."""
        ...

    def clear(self) -> None:
        """The reply is over or dropped: forget its cues; the mouth closes."""
        ...

    def pose(self, now: float, position: float | None, mood: Mood) -> Pose:
        """The pose for a frame shown at `now`, with the reply's audio at `position` (None: silent)."""
        ...


# ── what the timeline observes ─────────────────────────────────────────────────────────────────


class Stage(StrEnum):
    """Where a turn's time can go, in the order shares are taken (docs/metrics.md)."""

    UPLINK = "uplink"
    ENDPOINTING = "endpointing"
    ASR = "asr"
    ROUTE = "route"
    PREFILL = "prefill"
    HANDOFF = "handoff"
    FIRST_CLAUSE = "first_clause"
    TTS = "tts"
    EGRESS = "egress"
    PLAYOUT = "playout"


@dataclass(frozen=True, slots=True)
class Span:
    """A stage's work for one revision of one turn."""

    stage: Stage
    start: float
    end: float
    revision: int


class TurnInput(StrEnum):
    VOICE = "voice"
    TEXT = "text"


@dataclass(slots=True)
class TurnTrace:
    """What happened in a turn, filled in as it happens; `timeline` turns it into a record."""

    turn_id: str
    session_id: str
    input: TurnInput
    started_at: float
    speech_end: float | None = None
    """User speech end: the VAD's estimate, or when text arrived."""
    user_text: str = ""
    reply_text: str = ""
    heard_text: str | None = None
    committed_revision: int | None = None
    interrupted: bool = False
    failed: str | None = None
    spans: list[Span] = field(default_factory=list)
    first_token_at: float | None = None
    clause_times: list[tuple[float, float, float]] = field(default_factory=list)
    """Of each clause: where in the reply it begins (seconds), when it was written, when its sound came."""
    first_sound: float | None = None
    """Audio position of the first audible sample of all: a filler's, an apology's, or the reply's own."""
    first_audible: float | None = None
    """Audio position of the first audible sample of the reply's own words."""
    interrupted_by: float | None = None
    """When the user's voice set in that ended the reply."""
    first_sound_at: float | None = None
    first_audio_at: float | None = None
    """When the first sample of the reply's own words left; apologies and fillers do not count."""
    ended_at: float | None = None
    prompt: Prompt | None = None
    usage: Usage | None = None
    token_times: list[float] = field(default_factory=list)
    cancels: int = 0
    """Revisions of this turn whose answer was begun and dropped, or cut off by the user."""
    wasted_tokens: int = 0
    """Pieces of text that engines wrote for revisions of this turn that were dropped."""
    wasted_speech: float = 0.0
    """Seconds of speech that were synthesised for them."""


@dataclass(frozen=True, slots=True)
class ClockStamps:
    """A request for the time and its answer; seconds, of the client's clock and of ours."""

    asked: float
    """Client: the request left."""
    received: float
    """Ours: it came."""
    answered: float
    """Ours: the answer left."""
    returned: float
    """Client: it came."""


@dataclass(frozen=True, slots=True)
class ClientObservation:
    """What a client played and showed since it last said so: RTP time stamps, and when, by its own clock."""

    sound: Sequence[tuple[int, float]] = ()
    pictures: Sequence[tuple[int, float]] = ()
    concealed: Sequence[tuple[float, float]] = ()
    """From when to when sound was made up or left out because none had come."""
    hidden: bool = False
    """Nothing is painted now: the page is in the background."""
    lacks: frozenset[str] = frozenset()
    """"sound", "pictures": what the client has no means to tell."""
    audible: Sequence[float] = ()
    """When runs of audible sound began, by an energy gate on what was played."""


class Timeline(Protocol):
    """The observer of one session. It is told, and nothing waits for it."""

    def connected(self, rtp_origin: Callable[[str], int | None]) -> None:
        """`rtp_origin` of "audio" and "video": RTP time stamp = (pts + origin) mod 2**32."""
        ...

    def voice_made(self, pts: int, turn: str | None, span: tuple[float, float] | None) -> None:
        """A frame of sound goes out; `span`: the audio positions in it, None for silence."""
        ...

    def picture_made(
        self, pts: int, at: float, turn: str | None, position: float | None, *, moving: bool
    ) -> None:
        """A picture was drawn at `at` for an audio position; `moving`: with the mouth open."""
        ...

    def packet_sent(self, kind: str, rtp_timestamp: int) -> None:
        """A packet of "audio" or "video" left."""
        ...

    def held(self, held: bool) -> None:
        """The reply stands still for the user, or no longer."""
        ...

    def stamped(self, stamps: ClockStamps) -> None: ...

    def speech_ended(self, client_time: float) -> None:
        """A client that makes its user's speech says when it ended."""
        ...

    def observed(self, observation: ClientObservation) -> None: ...

    def turn_over(self, trace: TurnTrace) -> Mapping[str, Any]:
        """Told once about every turn; gives what the server knows of it as a record."""
        ...

    def close(self) -> None:
        """The call is over."""
        ...
