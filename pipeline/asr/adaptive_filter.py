"""What is left of a microphone's signal without what a linear echo path explains of it.

A partitioned-block frequency-domain Kalman filter: Enzner and Vary, "Frequency-domain adaptive Kalman
filter for acoustic echo control in hands-free telephones" (2006), partitioned as by Kuech, Mabande and
Enzner (ICASSP 2014). Every coefficient carries its own uncertainty, so that a user who speaks over the
echo slows learning down instead of spoiling what was learnt, and partitions that lie before or after
the echo fall still by themselves: nobody has to find the delay first.
"""

import numpy as np
import numpy.typing as npt

from pipeline.events import HEARING_RATE, WIRE_RATE, Samples

BLOCK = WIRE_RATE // 50
"""Samples a step, 20 ms at WIRE_RATE; also the length of a partition."""

_SPAN = BLOCK * HEARING_RATE // WIRE_RATE
_BINS = _SPAN + 1
"""Of a transform of two blocks at WIRE_RATE: those up to HEARING_RATE / 2. Nothing above is recognised."""

_PARTITIONS = 36
"""0.72 s from the first sample played to the last one heard of it."""

_TRANSITION = 0.995
"""How much of the path outlives a block. Lower follows clock drift and steps, higher settles deeper; at
100 ppm 0.995 took 2 to 3 dB more away than 0.999."""
_UNCERTAINTY = 0.01
"""Of each coefficient at first. More learns faster from loud echo, and overshoots with faint."""
_SMOOTHING = 0.9
_LEAST_NOISE = 1e-6 * BLOCK

_Spectra = npt.NDArray[np.complex64]


class AdaptiveFilter:
    """One echo path, learnt from what was played and what the microphone picked up."""

    def __init__(self) -> None:
        self._played = np.zeros(2 * BLOCK, np.float32)
        self._spectra: _Spectra = np.zeros((_PARTITIONS, _BINS), np.complex64)
        self._path: _Spectra = np.zeros((_PARTITIONS, _BINS), np.complex64)
        self._uncertainty = np.full((_PARTITIONS, _BINS), _UNCERTAINTY, np.float32)
        self._noise = np.zeros(_BINS, np.float32)

    def step(self, microphone: Samples, played: Samples) -> tuple[Samples, Samples]:
        """The microphone's block without echo, and the echo, for the block that was played with it."""
        self._played[:BLOCK] = self._played[BLOCK:]
        self._played[BLOCK:] = played
        self._spectra[1:] = self._spectra[:-1]
        self._spectra[0] = np.fft.rfft(self._played)[:_BINS]
        spectrum = np.zeros(BLOCK + 1, np.complex64)
        spectrum[:_BINS] = (self._path * self._spectra).sum(axis=0)
        echo = np.fft.irfft(spectrum)[BLOCK:].astype(np.float32)
        rest = microphone - echo
        self._learn(rest)
        return rest, echo

    def shift(self, blocks: int) -> None:
        """From now on the echo is `blocks` later than what is played with it (negative: earlier)."""
        lost = slice(0, blocks) if blocks > 0 else slice(blocks, None)
        self._path = np.roll(self._path, blocks, axis=0)
        self._path[lost] = 0
        self._uncertainty = np.roll(self._uncertainty, blocks, axis=0)
        self._uncertainty[lost] = _UNCERTAINTY

    def forget(self) -> None:
        """The path has changed. A filter that is sure of the old one would hardly ever learn the new."""
        self._path[:] = 0
        self._uncertainty[:] = _UNCERTAINTY

    def _learn(self, rest: Samples) -> None:
        error = np.fft.rfft(np.concatenate((np.zeros(BLOCK, np.float32), rest)))[:_BINS]
        power = np.abs(error) ** 2
        self._noise = np.maximum(_SMOOTHING * self._noise + (1 - _SMOOTHING) * power, _LEAST_NOISE)
        played = np.abs(self._spectra) ** 2
        # Half of each transform is padding, hence the factor of 0.5.
        gain = self._uncertainty / (0.5 * (played * self._uncertainty).sum(axis=0) + self._noise)
        update = np.fft.irfft(np.conj(self._spectra) * gain * error, 2 * _SPAN, axis=1)
        update[:, _SPAN:] = 0  # a partition is one block long; the rest is circular
        self._path += np.fft.rfft(update, axis=1).astype(np.complex64)
        kept = self._uncertainty * (1 - 0.5 * gain * played)
        self._uncertainty = _TRANSITION**2 * kept + (1 - _TRANSITION**2) * np.abs(self._path) ** 2
