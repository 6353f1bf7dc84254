"""What a tape is made of. A folder:

    call.json        a `Header`
    tape.jsonl       an `Entry` on each line, in the order in which they were known
    microphone.wav   what the user's microphone brought, without its gaps: 16 bit, mono, WIRE_RATE

Times are seconds of the server's monotonic clock, whose origin means nothing, exactly as they were: who
decides by them decides again alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

SCHEMA_VERSION = 1

HEADER = "call.json"
ENTRIES = "tape.jsonl"
MICROPHONE = "microphone.wav"


@dataclass(frozen=True, slots=True)
class Header:
    schema_version: int
    version: str
    """Of Visavis."""
    session_id: str
    date: str
    """When the call began, ISO 8601, for people to read."""
    started: float
    turn_end: bool
    """Whether there was a turn detector."""
    settings: Mapping[str, Any]
    """Of the configuration, what a conversation depends on; without secrets."""


# ── what crossed the wire ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Answered:
    """An offer was answered: the call begins, or goes on behind a new connection."""

    at: float
    kind: Literal["answered"] = "answered"


@dataclass(frozen=True, slots=True)
class Sound:
    """The microphone brought something."""

    at: float
    captured: float
    """When its last sample arrived."""
    samples: int | None
    """So many more of the file; None: nothing came for a while."""
    kind: Literal["sound"] = "sound"


@dataclass(frozen=True, slots=True)
class Frame:
    """20 ms of the agent's voice, or of silence, went out."""

    at: float
    index: int
    """Periods since the track's origin."""
    kind: Literal["frame"] = "frame"


@dataclass(frozen=True, slots=True)
class Message:
    """The client sent a message that a conversation depends on."""

    at: float
    name: str
    """Its class in `pipeline/webrtc/rtvi.py`."""
    fields: Mapping[str, Any]
    rtp_origin: int | None
    """What its RTP time stamp, if it has one, counts from."""
    kind: Literal["message"] = "message"


@dataclass(frozen=True, slots=True)
class Told:
    """The client was sent a message."""

    at: float
    text: str
    kind: Literal["told"] = "told"


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection is gone, and no other has taken its place."""

    at: float
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True, slots=True)
class Ended:
    """The tape is whole."""

    at: float
    fault: str | None
    """Name of the error that ended it; None when it was hung up."""
    kind: Literal["ended"] = "ended"


Input = Answered | Sound | Frame | Message | Closed | Ended
"""What comes from outside, and is the same however the conversation goes."""


# ── what the stages were asked ─────────────────────────────────────────────────────────────────


class Asked(StrEnum):
    """Who was, or about what."""

    TRANSCRIBER = "transcriber"
    TURN_END = "turn_end"
    PROMPTS = "prompts"
    READING = "reading"
    """The language model, how likely a sentence ends."""
    REPLY = "reply"
    """The language model, for one."""
    SYNTHESIZER = "synthesizer"
    HEADROOM = "headroom"


DONE = "done"
DROPPED = "dropped"
"""Nobody waited for the answer any more."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Of an answer."""

    asked: float
    """When it was waited for."""
    came: float
    value: Any
    """As `values.py` writes it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A question to a stage, and its answer."""

    asked: float
    stage: Asked
    key: str
    """The same for the same question."""
    about: str
    """The question in words, for a message that there is no answer to it."""
    pieces: Sequence[Piece]
    waited_since: float
    """Since when its end was waited for."""
    ended: float
    outcome: str
    """DONE, DROPPED, or the code of the error that was raised."""
    kind: Literal["call"] = "call"


Entry = Input | Told | Call
