"""Opus packets to mono sound whose time line stays true: what is missing is filled in.

Lost packets are concealed by libopus. FFmpeg has no call for that, but a packet of nothing but its table
of contents means "nothing was sent" (RFC 6716, sections 3.2.1 and 4.4) and libopus conceals it the same
way. Where the sender was silent (DTX, a muted microphone) the time stamps jump, and silence is filled in.
"""

import numpy as np
from av import CodecContext, Packet
from av.audio.codeccontext import AudioCodecContext
from av.error import FFmpegError

from pipeline.events import WIRE_RATE, Pcm
from pipeline.webrtc.tuning.receive_buffer import Released

MAX_FILL = 1.0
"""Longest gap that is filled, seconds, and how much can be filled ahead of time that really passed: a
client whose time stamps run away cannot make us work through hours of silence."""

MAX_CONCEALED = 0.1
"""Seconds of a gap that are concealed; the rest is silence. Real speech is past guessing by then."""


class OpusStream:
    """One stream's decoder."""

    def __init__(self) -> None:
        codec = CodecContext.create("libopus", "r")
        assert isinstance(codec, AudioCodecContext)
        codec.format, codec.layout, codec.sample_rate = "s16", "mono", WIRE_RATE
        self._codec = codec
        self._expected: int | None = None
        self._last_at = 0.0
        self._credit = MAX_FILL
        self._contents = b""
        self.filled = 0
        """Samples that were made up, concealment and silence."""
        self.undecodable = 0
        """Packets that are not Opus."""

    def decode(self, released: Released) -> Pcm:
        """The sound of a packet, with what is missing before it; maybe none."""
        packet = released.packet
        self._credit = min(MAX_FILL, self._credit + max(0.0, packet.at - self._last_at))
        self._last_at = packet.at
        if not packet.payload:
            return np.zeros(0, np.int16)
        missing = self._fill(released)
        try:
            sound = self._decode(packet.payload)
        except FFmpegError:
            self.undecodable += 1
            sound = np.zeros(0, np.int16)
        else:
            self._contents = bytes([packet.payload[0] & 0xFC])
        self._expected = (packet.timestamp + len(sound)) & 0xFFFFFFFF
        return np.concatenate((missing, sound))

    def _fill(self, released: Released) -> Pcm:
        gap = 0
        if self._expected is not None and not released.restarted:
            gap = max(0, _signed32(released.packet.timestamp - self._expected))
        if gap > self._credit * WIRE_RATE:
            gap = 0  # the time line starts anew
        self._credit -= gap / WIRE_RATE
        self.filled += gap
        filled = np.zeros(gap, np.int16)
        if released.lost and gap:
            self._conceal(filled[: round(MAX_CONCEALED * WIRE_RATE)], released.lost)
        return filled

    def _conceal(self, gap: Pcm, lost: int) -> None:
        """Write what the decoder makes of `lost` packets over the silence in `gap`."""
        position = 0
        for _ in range(lost):
            guess = self._decode(self._contents)[: len(gap) - position] if self._contents else gap[:0]
            if not len(guess):
                return
            gap[position : position + len(guess)] = guess
            position += len(guess)

    def _decode(self, payload: bytes) -> Pcm:
        frames = self._codec.decode(Packet(payload))
        return np.concatenate([np.zeros(0, np.int16), *(frame.to_ndarray()[0] for frame in frames)])


def _signed32(difference: int) -> int:
    return (difference + 0x80000000 & 0xFFFFFFFF) - 0x80000000
