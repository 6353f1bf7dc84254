"""Pictures through VP8 and back, coded as aiortc 1.16 codes a live call (aiortc/codecs/vpx.py)."""

from collections.abc import Iterable, Iterator
from fractions import Fraction

import av

from pipeline.events import Image

BITRATE = 500_000
FRAME_RATE = 25


def through_vp8(pictures: Iterable[Image], bitrate: int = BITRATE) -> Iterator[Image]:
    """The same pictures as a receiver sees them, in order."""
    encoder: av.VideoCodecContext | None = None
    decoder = av.CodecContext.create("libvpx", "r")
    for i, picture in enumerate(pictures):
        if encoder is None:
            encoder = _encoder(picture.shape[1], picture.shape[0], bitrate)
        frame = av.VideoFrame.from_ndarray(picture, format="bgr24").reformat(format="yuv420p")
        frame.pts, frame.time_base = i, Fraction(1, FRAME_RATE)
        for packet in encoder.encode(frame):
            for decoded in decoder.decode(packet):
                yield decoded.to_ndarray(format="bgr24")


def _encoder(width: int, height: int, bitrate: int) -> "av.VideoCodecContext":
    encoder = av.CodecContext.create("libvpx", "w")
    encoder.width, encoder.height = width, height
    encoder.pix_fmt = "yuv420p"
    encoder.time_base = Fraction(1, FRAME_RATE)
    encoder.bit_rate = bitrate
    encoder.gop_size = 3000
    encoder.qmin, encoder.qmax = 2, 56
    encoder.thread_count = 1
    encoder.options = {
        "bufsize": str(bitrate),
        "cpu-used": "-6",
        "deadline": "realtime",
        "lag-in-frames": "0",
        "minrate": str(bitrate),
        "maxrate": str(bitrate),
        "noise-sensitivity": "4",
        "overshoot-pct": "15",
        "partitions": "0",
        "static-thresh": "1",
        "undershoot-pct": "100",
    }
    return encoder
