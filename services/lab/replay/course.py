"""The course of a call: what was decided, and when, as far as the client was told of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pipeline.tape.entries import Told

SAME = 0.06
"""Seconds by which the same decision may come at another time: the event loop of the call was late now and
then, the one of a replay never is."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something was decided."""

    at: float
    """Seconds since the call began."""
    what: str


@dataclass(frozen=True, slots=True)
class Turn:
    """Times as in `Moment`; None: it did not happen."""

    record: Mapping[str, Any]
    """As the client got it when the turn was over."""
    committed: float | None
    replied: float | None
    over: float


@dataclass(frozen=True, slots=True)
class Course:
    moments: Sequence[Moment]
    turns: Sequence[Turn]


def course(told: Sequence[Told], began: float, *, until: float, fault: str | None) -> Course:
    """Of a call that began and lasted until then; `fault`: what ended it."""
    moments: list[Moment] = []
    turns: list[Turn] = []
    committed = replied = None
    for each in told:
        message = json.loads(each.text)
        at, data = each.at - began, message.get("data") or {}
        kind = data["type"] if message["type"] == "server-message" else message["type"]
        if each.at > until or (what := _decided(kind, data)) is None:
            continue
        moments.append(Moment(at, what))
        match kind:
            case "user-transcription":
                committed, replied = at, None
            case "bot-started-speaking":
                replied = at
            case "visavis.turn":
                turns.append(Turn(data["record"], committed, replied, at))
                committed = replied = None
    if fault is not None:
        moments.append(Moment(until - began, f"the call ends by {fault}"))
    return Course(moments, turns)


def first_difference(one: Course, other: Course) -> tuple[Moment | None, Moment | None] | None:
    """Where two courses part; None where they do not."""
    for ours, theirs in zip_longest(one.moments, other.moments):
        if ours is None or theirs is None or ours.what != theirs.what or abs(ours.at - theirs.at) > SAME:
            return ours, theirs
    return None


def _decided(kind: str, data: Mapping[str, Any]) -> str | None:
    """What a message to the client tells of a decision, in words."""
    match kind:
        case "visavis.state":
            return f"the user is {data['user']}, the agent {data['agent']}"
        case "user-transcription" if data["final"]:
            return f'the turn is "{data["text"]}"'
        case "visavis.reopened":
            return "the turn goes on after all"
        case "bot-started-speaking":
            return "the agent starts to speak"
        case "bot-stopped-speaking":
            return "the agent stops speaking"
        case "visavis.turn":
            return _outcome(data["record"])
        case "error":
            return f"the caller is told of {data['code']}"
    return None


def _outcome(record: Mapping[str, Any]) -> str:
    """Without the reply as it was written: how far it came before an interruption decides nothing."""
    parts = [
        f"the turn is over at revision {record['committed_revision']}",
        *(["interrupted"] if record["interrupted"] else []),
        *([f"failed: {record['failed']}"] if record["failed"] else []),
        f"{record['cancels']} answers dropped",
        f'heard: "{record["heard_text"]}"',
    ]
    return ", ".join(parts)
