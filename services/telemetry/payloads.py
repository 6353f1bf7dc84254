"""What is sent over MQTT. The classes are the payloads' shape; web/schemas holds it as JSON Schema."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from pipeline.timeline.shortened import shortened
from pipeline.timeline.turn_record import TurnRecord
from services.slo import Verdict

SCHEMA_VERSION: Final = 1
"""Goes up when a field changes its meaning or goes away, not when one comes."""

LARGEST = 16_384
"""Bytes of a payload."""


class Presence(StrEnum):
    ONLINE = "online"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class NodeState:
    """Retained: whether a server is there, and how busy it is. Null is what a last will cannot know."""

    schema_version: Literal[1]
    site: str
    node: str
    state: Presence
    reason: Literal["stopped", "lost"] | None
    """Why it is offline. lost: the broker says so in its place."""
    at: str | None
    """ISO 8601, UTC."""
    version: str
    sessions: int | None
    max_sessions: int
    dropped: int | None
    """Messages that found no room while the broker was away, since the server started."""


@dataclass(frozen=True, slots=True)
class TurnReport:
    """A turn that is over, as the server and its client measured it."""

    schema_version: Literal[1]
    site: str
    node: str
    at: str
    shortened: list[str]
    """Fields of the record that had to be cut for the payload to fit."""
    turn: TurnRecord
    """What people said is null in it, unless the operator sends content."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A turn that broke limits of slo.yaml all by itself."""

    schema_version: Literal[1]
    site: str
    node: str
    at: str
    session_id: str
    turn_id: str
    broken: list[Verdict]
    slo_digest: str
    """SHA-256 of the file of limits."""


def encoded(payload: NodeState | Alarm) -> bytes:
    return _json(asdict(payload))


def encoded_turn(site: str, node: str, at: str, record: Mapping[str, Any]) -> bytes:
    """A `TurnReport`, of `LARGEST` bytes at most: what is longest in it is cut until it fits."""

    def report(turn: Mapping[str, Any], cut: Sequence[str]) -> bytes:
        return _turn_report(site, node, at, turn, cut)

    return report(*shortened(record, lambda turn, cut: len(report(turn, cut)) <= LARGEST))


def _turn_report(site: str, node: str, at: str, turn: Mapping[str, Any], cut: Sequence[str]) -> bytes:
    return _json(
        {
            "schema_version": SCHEMA_VERSION,
            "site": site,
            "node": node,
            "at": at,
            "shortened": cut,
            "turn": turn,
        }
    )


def _json(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
