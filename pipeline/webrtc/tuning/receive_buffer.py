"""Puts the packets of a microphone in order without ever holding sound for long.

A packet that is next in order goes on at once, so the buffer adds no delay while nothing is missing. For
a missing one the later packets wait `PATIENCE` seconds, and once there are `REORDERED` of them, only
`BURST`; then it counts as lost and the delay is gone again. The rules for what is too far away to belong to
the stream are those of RFC 3550, appendix A.1.
"""

from dataclasses import dataclass

PATIENCE = 0.04
"""Seconds that a packet waits for one before it."""

REORDERED = 2
"""Later packets that are evidence of a loss, rather than of one overtaking the other."""

BURST = 0.01
"""Seconds in which packets that queued up somewhere come all at once. Their number is evidence of nothing:
after a stall the loop reads its sockets in turns, and a client may have sent to two (docs/decisions/0006)."""

MAX_HELD = 16
"""Packets that wait at most."""

MAX_DROPOUT = 3000
MAX_MISORDER = 100
"""Packets ahead and behind that still belong to the stream; what is further away starts a new one, once
its successor has confirmed it."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A packet, and when it came (seconds)."""

    ssrc: int
    sequence_number: int
    timestamp: int
    payload: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Released:
    """The next packet in order. `lost` were given up just before it; after a restart its time stamp has
    nothing to do with those before."""

    packet: Arrived
    lost: int = 0
    restarted: bool = False


class ReceiveBuffer:
    """Call `add` with every packet, and `expire` at `deadline`."""

    def __init__(self) -> None:
        self._ssrc = 0
        self._next: int | None = None
        self._held: dict[int, Arrived] = {}
        self._stray: Arrived | None = None
        self.lost = 0
        """Packets that never came, or too late."""
        self.late = 0
        """Packets that came too late, or twice."""

    @property
    def deadline(self) -> float | None:
        """When the wait for a missing packet is over; None when nothing waits."""
        if not self._held:
            return None
        patience = PATIENCE if len(self._held) < REORDERED else BURST
        return min(packet.at for packet in self._held.values()) + patience

    def add(self, packet: Arrived) -> list[Released]:
        """What can go on now that this one is here, in order."""
        if self._next is None:
            return self._restart(packet)
        ahead = _signed16(packet.sequence_number - self._next)
        if packet.ssrc != self._ssrc or not -MAX_MISORDER <= ahead <= MAX_DROPOUT:
            return self._stranger(packet)
        self._stray = None
        if ahead < 0 or packet.sequence_number in self._held:
            self.late += 1
            return []
        self._held[packet.sequence_number] = packet
        return self._release(packet.at)

    def expire(self, now: float) -> list[Released]:
        """What can go on because the wait for a missing packet is over."""
        return self._release(now)

    def _release(self, now: float) -> list[Released]:
        released: list[Released] = []
        lost = 0
        while self._held:
            assert self._next is not None
            packet = self._held.pop(self._next, None)
            if packet is not None:
                released.append(Released(packet, lost))
                self._next = (self._next + 1) & 0xFFFF
                lost = 0
                continue
            deadline = self.deadline
            assert deadline is not None
            if len(self._held) < MAX_HELD and now < deadline:
                break
            lost = min((sequence_number - self._next) & 0xFFFF for sequence_number in self._held)
            self.lost += lost
            self._next = (self._next + lost) & 0xFFFF
        return released

    def _stranger(self, packet: Arrived) -> list[Released]:
        """A packet that does not belong: the first of a new stream, or a straggler of an old one."""
        stray, self._stray = self._stray, packet
        if (
            stray is None
            or stray.ssrc != packet.ssrc
            or packet.sequence_number != (stray.sequence_number + 1) & 0xFFFF
        ):
            return []
        rest = self._release(float("inf"))
        return [*rest, *self._restart(stray), *self.add(packet)]

    def _restart(self, packet: Arrived) -> list[Released]:
        self._ssrc = packet.ssrc
        self._next = (packet.sequence_number + 1) & 0xFFFF
        return [Released(packet, restarted=True)]


def _signed16(difference: int) -> int:
    return (difference + 0x8000 & 0xFFFF) - 0x8000
