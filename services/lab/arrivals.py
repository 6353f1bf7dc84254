"""What arrives at a synthetic user, stamped when it arrives, before any buffer of the library's.

aiortc's receive buffer holds sound for 80 ms and a packet waits for its successor; neither belongs in a
measurement of the server. These taps take the buffer's place in an `RTCRtpReceiver`. Written against
aiortc 1.16: `_RTCRtpReceiver__jitter_buffer.add(packet)` is called once for every RTP packet and
returns (ask for a key frame, a complete frame or None).
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import av
import numpy as np
from aiortc import RTCRtpReceiver
from aiortc.jitterbuffer import JitterBuffer, JitterFrame
from aiortc.rtp import RtpPacket

from pipeline.clock import Clock
from pipeline.events import WIRE_RATE, Pcm
from pipeline.webrtc.rtvi import MAX_MOMENTS

PLAYOUT = 0.04
"""Seconds that a client without a sound card adds for one: NetEq's usual 20 to 30 ms and its own frame."""

LOOK_AHEAD = 312 / WIRE_RATE
"""Seconds by which a decoder gives a sample later than its packet's time stamp says (libopus,
OPUS_GET_LOOKAHEAD)."""

_BUFFER = "_RTCRtpReceiver__jitter_buffer"


@dataclass(frozen=True, slots=True)
class Heard:
    """A packet's sound. Sample k is heard at `at` + k / WIRE_RATE, plus the playout model."""

    at: float
    rtp_timestamp: int
    pcm: Pcm


@dataclass(slots=True)
class SoundTap:
    """Decodes each Opus packet as it comes."""

    clock: Clock
    heard: list[Heard] = field(default_factory=list)
    _decoder: Any = None
    _last: int | None = None
    _told: deque[Heard] = field(default_factory=lambda: deque(maxlen=MAX_MOMENTS))

    def fresh(self) -> list[Heard]:
        """What came since this was last asked."""
        fresh = list(self._told)
        self._told.clear()
        return fresh

    def playing(self, at: float) -> int | None:
        """RTP time stamp of the sample that arrived at `at`; None before the first."""
        latest = next((heard for heard in reversed(self.heard) if heard.at <= at), None)
        if latest is None:
            return None
        return (latest.rtp_timestamp + round((at - latest.at) * WIRE_RATE)) % 2**32

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        at = self.clock.now()
        data = packet._data  # type: ignore[attr-defined]  # set by the receiver
        if not data or (
            self._last is not None and not 0 < (packet.sequence_number - self._last) & 0xFFFF < 0x8000
        ):
            return False, None
        self._last = packet.sequence_number
        if self._decoder is None:
            self._decoder = av.CodecContext.create("libopus", "r")
            self._decoder.format, self._decoder.layout, self._decoder.sample_rate = "s16", "stereo", WIRE_RATE
        for frame in self._decoder.decode(av.Packet(data)):
            samples = frame.to_ndarray().reshape(-1, len(frame.layout.channels)).astype(np.int32)
            heard = Heard(at, packet.timestamp, np.asarray(samples.mean(axis=1), np.int16))
            self.heard.append(heard)
            self._told.append(heard)
        return False, None


@dataclass(slots=True)
class PictureTap:
    """Notes when each picture's last packet came and, to be decoded after the call, keeps it."""

    clock: Clock
    keep: bool
    seen: list[tuple[float, int]] = field(default_factory=list)
    """(arrival, RTP time stamp)"""
    kept: list[tuple[int, bytes]] = field(default_factory=list)
    """(RTP time stamp, VP8 frame)"""
    _told: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=MAX_MOMENTS))
    _buffer: JitterBuffer = field(default_factory=lambda: JitterBuffer(capacity=512, is_video=True))

    def fresh(self) -> list[tuple[float, int]]:
        """What came since this was last asked."""
        fresh = list(self._told)
        self._told.clear()
        return fresh

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        if packet.marker and (not self.seen or self.seen[-1][1] != packet.timestamp):
            self.seen.append((self.clock.now(), packet.timestamp))
            self._told.append(self.seen[-1])
        if not self.keep:
            return False, None
        key_frame_wanted, frame = self._buffer.add(packet)
        if frame is not None:
            self.kept.append((frame.timestamp, frame.data))
        return key_frame_wanted, None


def tap(receiver: RTCRtpReceiver, replacement: SoundTap | PictureTap) -> None:
    """Put a tap in the place of a receiver's buffer."""
    if not hasattr(receiver, _BUFFER):
        raise RuntimeError("aiortc's receiver has changed; services/lab/arrivals.py was written for 1.16")
    setattr(receiver, _BUFFER, replacement)
