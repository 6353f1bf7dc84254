"""Opus packets of a steady voice, for tests of the microphone's path."""

from fractions import Fraction

import numpy as np
from av import AudioFrame, CodecContext
from av.audio.codeccontext import AudioCodecContext

from pipeline.events import WIRE_RATE, Pcm

FRAME = WIRE_RATE // 50


def voice(index: int) -> Pcm:
    """Frame `index` of a tone."""
    times = np.arange(index * FRAME, (index + 1) * FRAME) / WIRE_RATE
    return (8000 * np.sin(2 * np.pi * 220 * times)).astype(np.int16)


def frame(pcm: Pcm, index: int) -> AudioFrame:
    made = AudioFrame.from_ndarray(pcm[None], format="s16", layout="mono")
    made.sample_rate, made.pts, made.time_base = WIRE_RATE, index * FRAME, Fraction(1, WIRE_RATE)
    return made


def opus_packets(count: int) -> list[bytes]:
    """20 ms of the tone each."""
    codec = CodecContext.create("libopus", "w")
    assert isinstance(codec, AudioCodecContext)
    codec.format, codec.layout, codec.sample_rate, codec.bit_rate = "s16", "mono", WIRE_RATE, 32_000
    return [bytes(made) for index in range(count) for made in codec.encode(frame(voice(index), index))]


def loudness(pcm: Pcm) -> float:
    return float(np.sqrt(np.mean(pcm.astype(float) ** 2)))
