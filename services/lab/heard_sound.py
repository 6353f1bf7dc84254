"""A stretch of what was heard: continuous for judging what is audible, exact about when it arrived."""

from collections.abc import Sequence

import numpy as np

from pipeline.audible import Run, audible_runs
from pipeline.events import WIRE_RATE, Pcm
from services.lab import recording
from services.lab.arrivals import Heard


class HeardSound:
    """What arrived between two moments, laid out by RTP time stamps, so that jitter does not tear it.

    A packet that came late was heard late: `arrival` tells when a sample really came.
    """

    def __init__(self, heard: Sequence[Heard], start: float, end: float) -> None:
        self.start = start
        self.pcm: Pcm = recording.sound(heard, start, end)
        self._heard = heard
        first = heard[0].rtp_timestamp if heard else 0
        stamps = np.array([packet.rtp_timestamp - first for packet in heard], np.int64)
        ticks = (stamps + 0x80000000) % 0x100000000 - 0x80000000
        arrivals = np.array([packet.at for packet in heard])
        anchor = float((arrivals - ticks / WIRE_RATE).min()) if heard else start
        self._positions = np.round((anchor - start) * WIRE_RATE).astype(np.int64) + ticks
        self._arrivals = arrivals

    def runs(self) -> list[Run]:
        """Audible runs, in samples from `start` on."""
        return audible_runs(self.pcm)

    def arrival(self, sample: int) -> float:
        """When a sample came, on the caller's clock."""
        index = int(np.searchsorted(self._positions, sample, side="right")) - 1
        if index < 0:
            return self.start + sample / WIRE_RATE
        inside = sample - int(self._positions[index])
        if inside >= len(self._heard[index].pcm):  # nothing came for it
            return self.start + sample / WIRE_RATE
        return float(self._arrivals[index]) + inside / WIRE_RATE
