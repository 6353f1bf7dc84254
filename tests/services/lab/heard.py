"""Calls as a synthetic user would have heard them, made up packet by packet."""

from collections.abc import Sequence

import numpy as np

from pipeline.events import WIRE_RATE, Pcm
from services.lab.arrivals import Heard

PACKET = WIRE_RATE // 50


def tone(seconds: float, level: float = 0.2) -> Pcm:
    """440 Hz at WIRE_RATE."""
    times = np.arange(round(seconds * WIRE_RATE)) / WIRE_RATE
    return np.asarray(np.sin(2 * np.pi * 440 * times) * level * 32767, np.int16)


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * WIRE_RATE), np.int16)


def packets(
    *pieces: Pcm, start: float = 100.0, first_stamp: int = 0xFFFF0000, late: dict[int, float] | None = None
) -> list[Heard]:
    """20 ms packets on time from `start` on; `late` are seconds of delay by packet number.

    Time stamps wrap around on the way, as they may in any call.
    """
    pcm = np.concatenate(pieces)
    return [
        Heard(
            start + k * 0.02 + (late or {}).get(k, 0.0),
            (first_stamp + k * PACKET) % (1 << 32),
            pcm[k * PACKET : (k + 1) * PACKET],
        )
        for k in range(len(pcm) // PACKET)
    ]


def without(heard: Sequence[Heard], *lost: int) -> list[Heard]:
    """The same, some packets lost."""
    return [packet for k, packet in enumerate(heard) if k not in lost]
