"""Encoders of our own senders: their bit rate, and the origin of the RTP time stamps they end up with."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
from aiortc import MediaStreamTrack, RTCRtpCodecParameters, RTCRtpSender, RTCRtpTransceiver
from aiortc.codecs import get_encoder
from aiortc.codecs.base import Encoder
from aiortc.codecs.vpx import Vp8Encoder
from aiortc.mediastreams import convert_timebase
from av import AudioFrame, VideoCodecContext, VideoFrame
from av.audio.codeccontext import AudioCodecContext
from av.frame import Frame
from av.packet import Packet

from pipeline.events import WIRE_RATE
from pipeline.webrtc.tuning.internals import CODECS, ENCODER, RTP_TIMESTAMP, TARGET_BITRATES, read, replace

RAISE = 1.5
"""A higher estimate is followed in steps of this factor. aiortc makes a new codec, so a key frame, for each
change of 10 %; Chromium's estimate climbs by 2 % five times a second, and the picture would pulse."""
VOICE_BITRATE = 64_000
"""Of Opus, bits a second."""
_SAME_BITRATE = 0.1
"""A codec is kept while the target is within this share of its rate, as aiortc has it."""


@dataclass(frozen=True, slots=True)
class Bitrate:
    """Bits a second of a picture: at first, and the limits within which a client's estimate of the path
    (REMB) moves it."""

    start: int = 1_000_000
    min: int = 300_000
    max: int = 1_000_000


class DrawnVp8Encoder(Vp8Encoder):
    """aiortc's VP8 with a codec set for drawn pictures.

    libvpx's denoiser is for cameras, and its slower searches find little in a picture that hardly moves:
    without both, 512 x 512 of the packaged face at 1 Mbit/s take 1.4 ms instead of 2.2 and are 2.4 dB nearer
    to what was drawn (PSNR 50.4 instead of 48.0 over 250 pictures).
    """

    def encode(self, frame: Frame, force_keyframe: bool = False) -> tuple[list[bytes], int]:
        assert isinstance(frame, VideoFrame)
        if not self._fits(frame):  # as aiortc judges it; it makes one of its own where this is None
            self.codec = self._new(frame.width, frame.height)
        return super().encode(frame, force_keyframe)

    def _fits(self, frame: VideoFrame) -> bool:
        codec = self.codec
        if codec is None or (codec.width, codec.height) != (frame.width, frame.height):
            return False
        assert codec.bit_rate is not None
        return abs(self.target_bitrate - codec.bit_rate) / codec.bit_rate <= _SAME_BITRATE

    def _new(self, width: int, height: int) -> VideoCodecContext:
        bitrate = str(self.target_bitrate)
        codec = av.CodecContext.create("libvpx", "w")
        codec.width, codec.height = width, height
        codec.bit_rate = self.target_bitrate
        codec.pix_fmt = "yuv420p"
        codec.gop_size = 3000
        codec.qmin, codec.qmax = 2, 56
        codec.options = {
            "cpu-used": "-12",
            "noise-sensitivity": "0",
            "deadline": "realtime",
            "lag-in-frames": "0",
            # a constant bit rate, of which a second is buffered
            "minrate": bitrate,
            "maxrate": bitrate,
            "bufsize": bitrate,
            "undershoot-pct": "100",
            "overshoot-pct": "15",
            "partitions": "0",
            "static-thresh": "1",
        }
        codec.thread_count = 1
        return codec


class TimedEncoder(Encoder):
    """An encoder that finds the origin of its sender's RTP time stamps, which aiortc keeps to itself."""

    def __init__(self, sender: RTCRtpSender, clock_rate: int) -> None:
        read(sender, RTP_TIMESTAMP)
        self._sender = sender
        self._clock_rate = clock_rate
        self._first: int | None = None
        self.origin: int | None = None
        """RTP time stamp = (pts * clock rate + origin) mod 2**32; known once a frame has been sent."""

    def encode(self, frame: Frame, force_keyframe: bool = False) -> tuple[list[bytes], int]:
        if self.origin is None and self._first is not None:
            # aiortc has sent a frame by the time it comes with the next.
            stamp = read(self._sender, RTP_TIMESTAMP)
            assert isinstance(stamp, int)
            self.origin = (stamp - self._first) % 2**32
        # Taken before: encoding as H264 moves a frame into the codec's coarser time base.
        pts = self._pts(frame)
        payloads, timestamp = self._encode(frame, pts, force_keyframe=force_keyframe)
        if self._first is None and payloads:
            self._first = pts
        return payloads, timestamp

    @abstractmethod
    def _encode(self, frame: Frame, pts: int, *, force_keyframe: bool) -> tuple[list[bytes], int]:
        """Payloads, and their time stamp in units of the clock rate, of which the first is 0."""

    def pack(self, packet: "Packet[Any]") -> tuple[list[bytes], int]:
        raise NotImplementedError("tracks of ours come with pictures and sound, not with packets")

    def _pts(self, frame: Frame) -> int:
        """In units of the clock rate."""
        assert frame.pts is not None
        assert frame.time_base is not None
        return convert_timebase(frame.pts, frame.time_base, Fraction(1, self._clock_rate))


class PromptSound(MediaStreamTrack):
    """A track of sound that a `VoiceEncoder` encodes where it comes, on the loop.

    Opus takes 0.1 ms for 20. For what it knows to be a frame aiortc works out the level in Python, which
    nobody reads, and goes to a thread and back: three times as long, on the thread that all calls share. What
    is no frame it takes for encoded already, and hands it to the encoder's `pack`.
    """

    kind = "audio"

    def __init__(self, track: MediaStreamTrack) -> None:
        super().__init__()
        self._track = track

    async def recv(self) -> Any:
        frame = await self._track.recv()
        assert isinstance(frame, Frame)
        return _Sound(frame)

    def stop(self) -> None:
        self._track.stop()
        super().stop()


@dataclass(frozen=True, slots=True)
class _Sound:
    frame: Frame


class VoiceEncoder(TimedEncoder):
    """Opus, a packet for each frame of 20 ms of mono sound.

    libavcodec stamps a packet with its oldest sample, and that is one of the look-ahead. So the first packet
    after a skip had the time stamp of what was skipped: it came late, and the skip was heard twice.
    """

    def __init__(self, sender: RTCRtpSender, clock_rate: int) -> None:
        super().__init__(sender, clock_rate)
        codec = av.CodecContext.create("libopus", "w")
        assert isinstance(codec, AudioCodecContext)
        codec.format, codec.layout, codec.sample_rate = "s16", "mono", WIRE_RATE
        codec.bit_rate = VOICE_BITRATE
        codec.options = {"application": "voip"}
        self._codec = codec

    def pack(self, packet: Any) -> tuple[list[bytes], int]:
        return self.encode(packet.frame)

    def _encode(self, frame: Frame, pts: int, *, force_keyframe: bool) -> tuple[list[bytes], int]:
        assert isinstance(frame, AudioFrame)
        payloads = [bytes(packet) for packet in self._codec.encode(frame)]
        return payloads, 0 if self._first is None else pts - self._first


class VideoEncoder(TimedEncoder):
    """VP8 or H264 within the limits of `bitrate`."""

    def __init__(self, sender: RTCRtpSender, codec: RTCRtpCodecParameters, bitrate: Bitrate) -> None:
        super().__init__(sender, codec.clockRate)
        self._inner: Encoder = DrawnVp8Encoder() if codec.name == "VP8" else get_encoder(codec)
        self._attribute = TARGET_BITRATES[codec.name]
        self._bitrate = bitrate
        replace(self._inner, self._attribute, bitrate.start)

    @property
    def target_bitrate(self) -> int:
        """Bits a second. aiortc sets it to the client's estimate, which is kept within the limits."""
        target = read(self._inner, self._attribute)
        assert isinstance(target, int)
        return target

    @target_bitrate.setter
    def target_bitrate(self, bitrate: int) -> None:
        within = max(self._bitrate.min, min(bitrate, self._bitrate.max))
        current = self.target_bitrate
        if within < current or within == self._bitrate.max or within >= RAISE * current:
            replace(self._inner, self._attribute, within)

    def _encode(self, frame: Frame, pts: int, *, force_keyframe: bool) -> tuple[list[bytes], int]:
        return self._inner.encode(frame, force_keyframe)


def tune_sender(transceiver: RTCRtpTransceiver, bitrate: Bitrate) -> TimedEncoder | None:
    """Give a sender, before its first frame, an encoder of ours for the codec that was negotiated.

    None when it already has an encoder. Raises IncompatibleLibraryError.
    """
    sender, codecs = transceiver.sender, read(transceiver, CODECS)
    if read(sender, ENCODER) is not None:
        return None
    assert isinstance(codecs, list)
    if sender.kind == "video":
        encoder: TimedEncoder = VideoEncoder(sender, codecs[0], bitrate)
    else:
        encoder = VoiceEncoder(sender, codecs[0].clockRate)
    replace(sender, ENCODER, encoder)
    return encoder
