"""When a client without a sound card plays what arrives: the playout model of docs/metrics.md, as it goes."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from pipeline.events import WIRE_RATE
from services.lab.arrivals import LOOK_AHEAD, PLAYOUT, Heard

_REMEMBERED = 100
"""Packets, 2 s, whose median says how long the way is; clocks drift apart, routes change."""


@dataclass(frozen=True, slots=True)
class Played:
    """RTP time stamps with when they were played, and from when to when there was nothing to play."""

    moments: list[tuple[int, float]]
    concealed: list[tuple[float, float]]


@dataclass(slots=True)
class PlayoutBuffer:
    """Plays PLAYOUT after a packet usually comes; what is later than that is played when it comes.

    So jitter below PLAYOUT is not heard, as behind any jitter buffer, and what is late by more is heard late
    by all of it: nothing is stretched or played faster. A packet that never came is played as nothing.
    A decoder keeps the last LOOK_AHEAD of what it was given, so what a packet holds is heard later by that.
    """

    _ways: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """Arrival less time stamp, newest last."""
    _ticks: int | None = None
    """The next sample's time stamp, unwrapped."""

    def play(self, heard: Iterable[Heard]) -> Played:
        """Packets in the order they came."""
        played = Played([], [])
        for packet in heard:
            ticks = self._unwrapped(packet.rtp_timestamp)
            self._ways.append(packet.at - ticks / WIRE_RATE)
            scheduled = ticks / WIRE_RATE + median(self._ways) + PLAYOUT
            at = max(scheduled, packet.at)
            if self._ticks is not None and ticks > self._ticks:
                played.concealed.append((at - (ticks - self._ticks) / WIRE_RATE, at))
            played.moments.append((packet.rtp_timestamp, at + LOOK_AHEAD))
            self._ticks = ticks + len(packet.pcm)
        return played

    def _unwrapped(self, rtp_timestamp: int) -> int:
        if self._ticks is None:
            return rtp_timestamp
        return self._ticks + (rtp_timestamp - self._ticks + 2**31) % 2**32 - 2**31
