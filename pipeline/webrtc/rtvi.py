"""RTVI 2.x on the data channel: what clients send, parsed; what we send, built.

The envelope is {"id", "label": "rtvi-ai", "type", "data"}. Beside it, Pipecat's stock client
(client-js 1.13, small-webrtc-transport 1.10) sends plain strings that begin "ping" every second, and
{"type": "signalling", "message": {"type": "trackStatus", "receiver_index", "enabled"}} when a track
is muted. Source: https://docs.pipecat.ai/client/rtvi-standard and that client's code.
"""

import json
import uuid
from dataclasses import dataclass
from typing import Any

from pipeline.errors import BadMessageError
from pipeline.events import ClientObservation, ClockStamps

VERSION = "2.1.0"
LABEL = "rtvi-ai"

_LATEST = 2.0**40
"""Seconds, as a time: more is no clock's."""

MAX_MOMENTS = 128
"""In one report of what was played or shown, of each: two seconds, and no message beyond 16 KB."""

_TOLD = ("sound", "pictures")
"""What a client reports moments of."""

MAX_MESSAGE = 64 * 1024
"""Bytes; what aiortc's SCTP announces as its largest message."""


@dataclass(frozen=True, slots=True)
class ClientReady:
    id: str
    version: str


@dataclass(frozen=True, slots=True)
class SendText:
    id: str
    content: str


@dataclass(frozen=True, slots=True)
class ClientMessage:
    id: str
    kind: str
    data: Any


@dataclass(frozen=True, slots=True)
class PlayoutReport:
    """What the client was playing when it sent this, as the RTP time stamp of the audio sample."""

    rtp_timestamp: int


@dataclass(frozen=True, slots=True)
class ClockQuestion:
    """What time is it? `before` are the four stamps of the question before, once its answer has come."""

    asked: float
    before: ClockStamps | None


@dataclass(frozen=True, slots=True)
class Observed:
    observation: ClientObservation


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """A client that makes its user's speech knows when it ended, by its own clock."""

    at: float


@dataclass(frozen=True, slots=True)
class PushToTalk:
    """The user holds the button to be heard, or let go of it."""

    pressed: bool


@dataclass(frozen=True, slots=True)
class Interrupt:
    """The user wants the reply to stop."""


@dataclass(frozen=True, slots=True)
class DisconnectBot:
    pass


@dataclass(frozen=True, slots=True)
class TrackStatus:
    """The client muted or unmuted a track; index 0 is its microphone."""

    receiver_index: int
    enabled: bool


@dataclass(frozen=True, slots=True)
class Ping:
    pass


@dataclass(frozen=True, slots=True)
class Unknown:
    """A message of the protocol that we have no use for."""

    id: str
    kind: str


Incoming = (
    ClientReady
    | SendText
    | ClientMessage
    | PlayoutReport
    | ClockQuestion
    | Observed
    | SpeechEnded
    | PushToTalk
    | Interrupt
    | DisconnectBot
    | TrackStatus
    | Ping
    | Unknown
)


def parse(text: str | bytes) -> Incoming:
    """A message from a client. Raises BadMessageError, which says what was expected."""
    if len(text) > MAX_MESSAGE:
        raise BadMessageError(f"message of {len(text):,} bytes; at most {MAX_MESSAGE:,} are accepted")
    if isinstance(text, bytes):
        raise BadMessageError("binary message; expected JSON text")
    try:
        return _parse(text)
    except RecursionError as error:
        raise BadMessageError("message is nested too deeply; expected an RTVI envelope") from error


def _parse(text: str) -> Incoming:
    if text.startswith("ping"):
        return Ping()
    try:
        message = json.loads(text)
    except ValueError as error:
        raise BadMessageError("message is not JSON; expected an RTVI envelope") from error
    if not isinstance(message, dict):
        raise BadMessageError(f"message is a JSON {type(message).__name__}; expected an object")
    if message.get("type") == "signalling":
        return _signalling(message.get("message"))
    if message.get("label") != LABEL:
        raise BadMessageError(f'label is {_short(message.get("label"))}; expected "{LABEL}"')
    return _rtvi(_text(str(message.get("id", ""))), message.get("type"), message.get("data"))


def _signalling(message: Any) -> Incoming:
    match message:
        case {"type": "trackStatus", "receiver_index": int(index), "enabled": bool(enabled)}:
            return TrackStatus(index, enabled)
        case {"type": str(kind)}:
            return Unknown("", f"signalling {kind}")
    raise BadMessageError("signalling message without a type")


def _rtvi(identifier: str, kind: Any, data: Any) -> Incoming:
    match kind, data:
        case "client-ready", dict():
            return ClientReady(identifier, str(data.get("version", "")))
        case "client-ready", _:
            return ClientReady(identifier, "")
        case "send-text", {"content": str(content)}:
            return SendText(identifier, _text(content))
        case "send-text", _:
            raise BadMessageError("send-text without a text in data.content")
        case "client-message", {"t": str(name)}:
            return _client_message(identifier, _text(name), data.get("d"))
        case "client-message", _:
            raise BadMessageError("client-message without a name in data.t")
        case "disconnect-bot", _:
            return DisconnectBot()
        case str(), _:
            return Unknown(identifier, _text(kind))
    raise BadMessageError(f"type is {_short(kind)}; expected a string")


def _client_message(identifier: str, name: str, data: Any) -> Incoming:
    match name, data:
        # Not a pattern int(): it would match true.
        case "visavis.playout", {"rtp_timestamp": stamp} if type(stamp) is int and 0 <= stamp < 2**32:
            return PlayoutReport(stamp)
        case "visavis.playout", _:
            raise BadMessageError(
                f"visavis.playout with {_short(data)}; expected a d.rtp_timestamp of 0 to 4,294,967,295"
            )
        case "visavis.clock", {"asked": asked} if _is_time(asked):
            return ClockQuestion(float(asked), _stamps(data.get("before")))
        case "visavis.clock", _:
            raise BadMessageError(f"visavis.clock with {_short(data)}; expected a d.asked in seconds")
        case "visavis.observed", dict():
            sound, pictures = (_moments(data.get(name, []), name) for name in _TOLD)
            concealed = _stretches(data.get("concealed", []))
            lacks = frozenset(_TOLD).intersection(_names(data.get("lacks", [])))
            hidden = data.get("hidden") is True
            audible = _times(data.get("audible", []))
            return Observed(ClientObservation(sound, pictures, concealed, hidden, lacks, audible))
        case "visavis.observed", _:
            raise BadMessageError(
                f"visavis.observed with {_short(data)}; expected an object with d.sound and d.pictures"
            )
        case "visavis.speech_end", {"at": at} if _is_time(at):
            return SpeechEnded(float(at))
        case "visavis.speech_end", _:
            raise BadMessageError(f"visavis.speech_end with {_short(data)}; expected a d.at in seconds")
        case "visavis.push_to_talk", {"pressed": bool(pressed)}:
            return PushToTalk(pressed)
        case "visavis.push_to_talk", _:
            raise BadMessageError(
                f"visavis.push_to_talk with {_short(data)}; expected a d.pressed of true or false"
            )
        case "visavis.interrupt", _:
            return Interrupt()
    return ClientMessage(identifier, name, data)


def _is_time(value: Any) -> bool:
    # JSON's integers have no end, and floats do.
    return type(value) in (int, float) and abs(value) < _LATEST


def _stamps(data: Any) -> ClockStamps | None:
    if data is None:
        return None
    if not (isinstance(data, list) and len(data) == 4 and all(map(_is_time, data))):
        raise BadMessageError(f"visavis.clock with d.before {_short(data)}; expected four times in seconds")
    return ClockStamps(*map(float, data))


def _moments(data: Any, name: str) -> tuple[tuple[int, float], ...]:
    """[[RTP time stamp, seconds], …]"""
    if not isinstance(data, list) or len(data) > MAX_MOMENTS:
        raise BadMessageError(f"visavis.observed: d.{name} is no list of at most {MAX_MOMENTS} moments")
    moments = []
    for moment in data:
        match moment:
            case [stamp, at] if type(stamp) is int and 0 <= stamp < 2**32 and _is_time(at):
                moments.append((stamp, float(at)))
            case _:
                raise BadMessageError(
                    f"visavis.observed: d.{name} holds {_short(moment)}; expected [RTP time stamp, seconds]"
                )
    return tuple(moments)


def _stretches(data: Any) -> tuple[tuple[float, float], ...]:
    """[[seconds, seconds], …]: from when to when."""
    if not isinstance(data, list) or len(data) > MAX_MOMENTS:
        raise BadMessageError(f"visavis.observed: d.concealed is no list of at most {MAX_MOMENTS} stretches")
    stretches = []
    for stretch in data:
        match stretch:
            case [start, end] if _is_time(start) and _is_time(end) and start <= end:
                stretches.append((float(start), float(end)))
            case _:
                raise BadMessageError(
                    f"visavis.observed: d.concealed holds {_short(stretch)}; expected [start, end] in seconds"
                )
    return tuple(stretches)


def _times(data: Any) -> tuple[float, ...]:
    """[seconds, …]"""
    if not (isinstance(data, list) and len(data) <= MAX_MOMENTS and all(map(_is_time, data))):
        raise BadMessageError(
            f"visavis.observed: d.audible is {_short(data)}; expected at most {MAX_MOMENTS} times in seconds"
        )
    return tuple(map(float, data))


def _names(data: Any) -> list[str]:
    """Of what a later client may lack and we do not know, nothing is said."""
    if not (
        isinstance(data, list) and len(data) <= MAX_MOMENTS and all(isinstance(name, str) for name in data)
    ):
        raise BadMessageError(f"visavis.observed: d.lacks is {_short(data)}; expected a list of names")
    return data


def clock_answer(asked: float, received: float, answered: float) -> str:
    """The answer to a question for the time."""
    return server_message("visavis.clock", asked=asked, received=received, answered=answered)


def message(kind: str, data: dict[str, Any] | None = None, *, identifier: str | None = None) -> str:
    """A message to a client."""
    envelope = {"id": identifier or uuid.uuid4().hex[:8], "label": LABEL, "type": kind, "data": data or {}}
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))


def server_message(kind: str, **data: Any) -> str:
    """One of our own messages, `visavis.…`, inside RTVI's server-message."""
    return message("server-message", {"type": kind, **data})


def error(text: str, *, code: str, fatal: bool = False) -> str:
    """`message` beside `error`: older clients read only that."""
    return message("error", {"error": text, "message": text, "fatal": fatal, "code": code})


def peer_left() -> str:
    """Tells Pipecat's client that we hang up."""
    return json.dumps({"type": "signalling", "message": {"type": "peerLeft"}})


def _text(text: str) -> str:
    """JSON can carry half a surrogate pair; nothing that speaks UTF-8 can. It becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
