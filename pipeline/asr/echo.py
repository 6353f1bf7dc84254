"""The avatar's own voice, taken out of what the user's microphone brings back.

A browser's canceller does this too, but not every client has one that works, and what is being played
is known here exactly. What was played is lined up with the microphone, sample for sample;
a linear filter takes out of the microphone what it explains (`adaptive_filter.py`); what is left passes
only where it looks like somebody else (`near_end.py`), unless the user is proven not to hear us back
(`isolation.py`). Words that come through all the same are the
business of `self_speech.py`.
"""

from collections import deque

import numpy as np
import numpy.typing as npt

from pipeline.asr.adaptive_filter import BLOCK, AdaptiveFilter
from pipeline.asr.isolation import Isolation
from pipeline.asr.near_end import NearEndDetector
from pipeline.events import WIRE_RATE, Pcm, Samples

_SILENCE = np.zeros(BLOCK, np.int16)

_CUSHION = 2
"""Blocks that what was played is held back, so that neither side's jitter leaves a hole. Echo takes longer:
the client's jitter buffer alone holds 40 ms."""
_SURPLUS = 3
"""Blocks more than that, held for a whole watch, are skipped: packets were lost, or clocks have drifted."""
_WATCH = 100
_MOST = 100
"""Blocks kept while no microphone asks for them."""

_AUDIBLE = 30
"""Amplitude, -61 dB of full scale."""
_IDLE = round(1.4 * WIRE_RATE / BLOCK)
"""Blocks after the last audible one until nothing can be heard of it: delay, filter and reverberation."""

_SMOOTHING = 0.9
_WORSE = 1.05
"""Times the microphone's power that the rest has when the echo path is no longer the one that was learnt."""
_DOUBTFUL = 0.5
"""Share of the microphone's power explained by the reply, from which on it is not isolated."""
_LEAST = 3e-6
"""Power, -55 dB of full scale: what is fainter tells nothing."""


class EchoCanceller:
    """One per session, for one microphone; about 0.3 ms for 20 ms while a reply can be heard.

    `played` and `clean` are called in the order in which things happen, from one thread.
    """

    def __init__(self) -> None:
        self._filter = AdaptiveFilter()
        self._detector = NearEndDetector()
        self._isolation = Isolation()
        self._played: deque[Pcm] = deque([_SILENCE] * _CUSHION, maxlen=_MOST)
        self._fewest = _CUSHION
        self._watched = 0
        self._quiet = _IDLE
        self._waiting = np.zeros(0, np.int16)
        self._ready = np.zeros((2, 0), np.int16)
        self._late = False
        self._microphone_power = self._rest_power = self._echo_power = 0.0
        self.residual: Pcm = np.zeros(0, np.int16)
        """What the last `clean` would have given if nothing were muted: for a recogniser, which wants the
        beginning of a word that the detector only noticed in its middle."""

    @property
    def echo_share(self) -> float:
        """Share in [0, 1] of the microphone's power of the last 0.2 s that the reply explains."""
        if self._quiet > _IDLE:
            return 0.0
        return min(1.0, self._echo_power / (self._microphone_power + _LEAST))

    def played(self, pcm: Pcm) -> None:
        """A frame of BLOCK samples goes out now; every frame, also silent ones."""
        if pcm.shape != (BLOCK,):
            raise ValueError(f"a frame has {BLOCK} samples, got shape {pcm.shape}")
        self._played.append(pcm)

    def clean(self, pcm: Pcm) -> Pcm:
        """The microphone's audio at WIRE_RATE without the avatar in it; muted where nothing else is.

        As long as what came in. Nothing is late while that is whole blocks; once it is not, all that
        follows is a block late.
        """
        if len(pcm) % BLOCK and not self._late:
            self._late = True
            self._ready = np.zeros((2, BLOCK), np.int16)
        waiting = np.concatenate((self._waiting, pcm))
        whole = len(waiting) // BLOCK * BLOCK
        done = [self._block(waiting[start : start + BLOCK]) for start in range(0, whole, BLOCK)]
        self._waiting = waiting[whole:]
        ready = np.concatenate((self._ready, *done), axis=1)
        self._ready = ready[:, len(pcm) :]
        cleaned, self.residual = ready[:, : len(pcm)]
        return np.asarray(cleaned)

    def _block(self, pcm: Pcm) -> npt.NDArray[np.int16]:
        """A block as it is passed on, and as it is without muting, shape (2, BLOCK)."""
        played = self._next_played()
        audible = int(np.abs(played).max()) > _AUDIBLE
        self._quiet = 0 if audible else self._quiet + 1
        if self._quiet > _IDLE:
            return np.stack((pcm, pcm))
        microphone = _samples(pcm)
        rest, echo = self._filter.step(microphone, _samples(played))
        self._weigh(microphone, rest, echo)
        self._isolation.observe(_samples(played), microphone)
        if self.echo_share > _DOUBTFUL:
            self._isolation.doubt()
        speaks = self._detector.speaks(rest, echo, audible=audible) or self._isolation.proven
        # While it learns, the filter can add more than it takes away.
        better = rest if _power(rest) < _power(microphone) else microphone
        residual = np.clip(better * 32768, -32768, 32767).astype(np.int16)
        return np.stack((residual if speaks else _SILENCE, residual))

    def _next_played(self) -> Pcm:
        if not self._played:
            self._played.extend([_SILENCE] * (_CUSHION + 1))
            self._filter.shift(-_CUSHION - 1)
        self._fewest = min(self._fewest, len(self._played))
        self._watched += 1
        if self._watched >= _WATCH:
            surplus = self._fewest - _CUSHION
            if surplus >= _SURPLUS:
                for _ in range(surplus):
                    self._played.popleft()
                self._filter.shift(surplus)
            self._watched, self._fewest = 0, len(self._played)
        return self._played.popleft()

    def _weigh(self, microphone: Samples, rest: Samples, echo: Samples) -> None:
        """Follow the powers; an echo that makes things worse comes from a path that is no more."""
        self._microphone_power = _smooth(self._microphone_power, microphone)
        self._rest_power = _smooth(self._rest_power, rest)
        self._echo_power = _smooth(self._echo_power, echo)
        if self._detector.learnt and self._rest_power > _WORSE * self._microphone_power + _LEAST:
            self._filter.forget()
            self._detector.forget()


def _samples(pcm: Pcm) -> Samples:
    return pcm.astype(np.float32) / np.float32(32768)


def _smooth(before: float, block: Samples) -> float:
    return _SMOOTHING * before + (1 - _SMOOTHING) * _power(block)


def _power(block: Samples) -> float:
    return float(block @ block) / len(block)
