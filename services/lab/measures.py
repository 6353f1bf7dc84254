"""A client's own times, joined to the server's record of a turn (docs/metrics.md)."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.events import WIRE_RATE
from pipeline.timeline.record import empty_record
from services.lab.arrivals import PLAYOUT, Heard
from services.lab.heard_sound import HeardSound
from services.lab.microphone import Utterance
from services.lab.synthetic_user import SyntheticUser, Told

PLAYOUT_MS = PLAYOUT * 1000

_MEASURED_WITHIN = 3.0
"""Seconds after a reply within which the server has made up its timeline."""


def joined(
    record: Mapping[str, Any],
    name: str,
    utterance: Utterance,
    heard: Sequence[Heard],
    *,
    own: bool,
) -> dict[str, Any]:
    """The record of a turn with what this caller heard of it; `heard`: since before the utterance's end.

    `own` says that the turn answers the whole utterance; otherwise the server took a pause in it for
    its end (`premature`), and how soon it answered means nothing.
    """
    first = _first_sound(utterance, heard) if own else None
    said_own_words = bool(record["reply_text"]) and record["failed"] is None
    return {
        **record,
        "file": name,
        "premature": not own,
        "ledger_first_audio_ms": record.get("ledger_first_audio_ms") if own else None,
        "time_to_first_audio_ms": first if said_own_words else None,
        "time_to_first_sound_ms": first,
    }


_OWN = frozenset({"time_to_first_audio_ms", "time_to_first_sound_ms"})
"""What this client measures by itself, from the sound that came."""


def with_server_timeline(
    records: Sequence[Mapping[str, Any]], told: Sequence[Told]
) -> list[Mapping[str, Any]]:
    """Records joined with what the server made of this client's reports on the same turns."""
    records_told = (each.data["record"] for each in told if each.type == "visavis.measured")
    measured = {record["turn_id"]: record for record in records_told}
    return [
        {
            **record,
            **{key: value for key, value in found.items() if key not in _OWN},
            "ledger_first_audio_ms": None if record.get("premature") else found["time_to_first_audio_ms"],
        }
        if (found := measured.get(record["turn_id"])) is not None
        else record
        for record in records
    ]


async def until_measured(user: SyntheticUser, records: Sequence[Mapping[str, Any]]) -> None:
    """Wait for what the server made of our reports on the last of these turns.

    Not for long: a server of another make sends nothing. Raises CallError.
    """
    last = next((record["turn_id"] for record in reversed(records) if record["turn_id"]), None)
    if last is None:
        return

    def measured(told: Told) -> bool:
        return told.type == "visavis.measured" and told.data["record"]["turn_id"] == last

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_MEASURED_WITHIN):
            await user.until(measured)


def unanswered(name: str, utterance: Utterance, now: float) -> dict[str, Any]:
    """The record of a question that no turn of the server answered; `total_ms` is null when the call
    ended before the question did."""
    waited = None if utterance.end is None else round((now - utterance.end) * 1000, 1)
    return {**unheard(name), "failed": "no_reply", "total_ms": waited}


def unheard(name: str) -> dict[str, Any]:
    """The record of a turn that the caller heard nothing of."""
    return {**empty_record(), "file": name, "premature": False, "ledger_first_audio_ms": None}


def _first_sound(utterance: Utterance, heard: Sequence[Heard]) -> float | None:
    """Milliseconds from the user's speech end to the first audible sample; None when the agent was
    audible at that moment already, so that no sample is the first."""
    assert utterance.end is not None
    if not heard:
        return None
    before = 0.06
    sound = HeardSound(heard, utterance.end - before, heard[-1].at + 0.02)
    runs = sound.runs()
    if not runs or runs[0].start < before * WIRE_RATE:
        return None
    return round((sound.arrival(runs[0].start) - utterance.end) * 1000 + PLAYOUT_MS, 1)
