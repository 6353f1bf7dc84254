"""When a reply fell silent after its caller began to speak, and how much of it was heard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.events import WIRE_RATE, Pcm
from services.lab.arrivals import Heard
from services.lab.heard_sound import HeardSound
from services.lab.studio.words import reached, words

_TOLD_LATE = 0.06
"""A turn's record may arrive this much after the sound of the next reply: they travel apart."""

_TALKING = 0.3
"""Seconds before the onset within which the reply must have been audible for it to be interrupted."""


@dataclass(frozen=True, slots=True)
class Stop:
    """`last` is when the last audible sample of the interrupted reply came; `ms` from the user's onset.

    `ms` is None when the reply was not being heard at the onset: in a pause of its own, or over.
    """

    last: float | None
    ms: float | None


def stop(
    heard: Sequence[Heard], reply_from: float, onset: float, utterance_end: float, cancelled: float
) -> Stop:
    """From what was heard since `reply_from`, all on the caller's clock.

    `cancelled` is when the record of the interrupted turn came. What begins to sound after both that and
    the utterance's end is the next reply; everything before is this one, ducked or not.
    """
    if not heard:
        return Stop(None, None)
    sound = HeardSound(heard, reply_from, heard[-1].at + 0.02)
    next_reply = max(cancelled - _TOLD_LATE, utterance_end)
    runs = [(sound.arrival(run.start), sound.arrival(run.end - 1) + 1 / WIRE_RATE) for run in sound.runs()]
    own = [(start, end) for start, end in runs if start < next_reply]
    if not own:
        return Stop(None, None)
    last = own[-1][1]
    talking = any(start < onset and end > onset - _TALKING for start, end in own)
    # One that fell silent just before the onset was stopped by nothing.
    return Stop(last, round((last - onset) * 1000, 1) if talking and last > onset else None)


def excerpt(heard: Sequence[Heard], start: float, last: float) -> Pcm:
    """The recording of a reply up to its cut."""
    return HeardSound(heard, start, last + 0.02).pcm


def lost(record: Mapping[str, Any], turns: int) -> list[str]:
    """What a false interruption did to a reply; nothing, when it went on to its end."""
    found = []
    if record["interrupted"]:
        found.append("the reply was interrupted")
    if record["failed"] is not None:
        found.append(f"the turn failed ({record['failed']})")
    if turns > 1:
        found.append(f"{turns} turns")
    said, played = words(record["reply_text"] or ""), words(record["heard_text"] or "")
    if not record["interrupted"] and said != played:
        found.append(f"{len(said) - len(played)} words of {len(said)} were lost")
    return found


def mismatch(reply_text: str, heard_text: str, transcript: str) -> int:
    """By how many words `heard_text` goes further (+) or less far (-) than what an ear made out.

    The ear's words are found in the whole reply first, so that one misheard in the middle does not count.
    """
    reply, claimed = words(reply_text), words(heard_text)
    return len(claimed) - reached(reply, words(transcript), len(claimed))
