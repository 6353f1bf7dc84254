"""Is what arrives without holes: sound through a small playout buffer, pictures by the W3C's rule."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.events import WIRE_RATE
from pipeline.timeline.render_freezes import stills
from services.lab.arrivals import Heard
from services.lab.measures import PLAYOUT_MS

GAP_MS = 40.0
"""A hole in speech from this length on is a speech gap."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Something missing, `at` seconds on the caller's clock."""

    at: float
    ms: float


def underruns(heard: Sequence[Heard], start: float, end: float) -> list[Hole]:
    """Holes of at least GAP_MS in what a player with 40 ms of buffer plays between two moments.

    It starts 40 ms after the first packet, plays packets one after the other, and waits when there is
    none: what is late by less than its buffer is not heard to be late. A packet that never came is as
    long a hole as its sound.
    """
    packets = [packet for packet in heard if start <= packet.at < end]
    if not packets:
        return []
    holes: list[Hole] = []
    playing_until = packets[0].at + PLAYOUT_MS / 1000
    expected = packets[0].rtp_timestamp
    for packet in packets:
        missing = ((packet.rtp_timestamp - expected + 0x80000000) % 0x100000000 - 0x80000000) / WIRE_RATE
        dry = max(packet.at - playing_until, 0.0, missing)
        if dry * 1000 >= GAP_MS:
            holes.append(Hole(playing_until, round(dry * 1000, 1)))
        playing_until = max(playing_until + dry, packet.at) + len(packet.pcm) / WIRE_RATE
        expected = (packet.rtp_timestamp + len(packet.pcm)) % 0x100000000
    return holes


def freezes(arrivals: Sequence[float], end: float) -> list[Hole]:
    """Render freezes by the W3C's rule; one open at `end` counts."""
    return [Hole(each.at, round(each.duration * 1000, 1)) for each in stills(arrivals, end) if each.w3c]
