"""Does the user speak, or is what the adaptive filter left over still the avatar?

The filter leaves residue 7 to 11 dB below the echo: Opus codes both ways, clocks drift, loudspeakers
distort. Residue lies where the echo lies, in time and frequency; a user does not. So the rest is
compared with the estimated echo band by band, and speech is when it is louder in half of them.
"""

from collections import deque

import numpy as np
import numpy.typing as npt

from pipeline.asr.adaptive_filter import BLOCK
from pipeline.events import Samples

_EDGES = np.array([4, 8, 12, 16, 20, 26, 32, 40, 50, 62, 76, 92, 112, 140, 170, 200, 240])
"""Of the bands, in bins of 25 Hz: 100 Hz to 6 kHz, wider as hearing's own get wider."""

_LOUDER = 2.0
"""Times the echo's power that a band of speech has at least."""
_LOUDER_AT_FIRST = 10.0
_DEAF = 45
_LEARNT = 85
"""Blocks of audible reply: before the first the filter knows no echo path and nothing is believed;
before the second it knows it roughly."""
_ECHO_GONE = 25
"""Blocks after audible reply from which a filter that knows nothing yet need not be feared."""
_TAIL = 0.75
"""Of the echo's power, a block later: reverberation that the filter does not reach, -60 dB in 0.96 s."""
_BANDS_TO_OPEN = 0.5
_BANDS_TO_STAY = 0.25
_HOLD = 8
"""Blocks for which speech goes on after the last one that looked like it."""
_NOISE = 4.0
_NOISE_RISE = 1.004
"""A block: 0.9 dB a second; it falls at once."""
_LEAST = 2e-9
"""Power of a band, about a fifth of the least bit of 16."""
_WINDOW = np.hanning(2 * BLOCK).astype(np.float32)

_Bands = npt.NDArray[np.float64]


class NearEndDetector:
    """Feed it every block of the rest and of the estimated echo, as the adaptive filter gives them.

    The limits were set on two rooms, three levels, three delays and five voices, and tried on others
    (docs/decisions/0007-echo.md).
    """

    def __init__(self) -> None:
        self._rest = np.zeros(BLOCK, np.float32)
        self._echo = np.zeros(BLOCK, np.float32)
        self._masking: _Bands = np.zeros(len(_EDGES) - 1)
        self._noise: _Bands = np.full(len(_EDGES) - 1, np.inf)
        self._recent: deque[bool] = deque([False] * 3, maxlen=3)
        self._since = _HOLD
        self._learnt = 0
        self._quiet = 0

    def speaks(self, rest: Samples, echo: Samples, *, audible: bool) -> bool:
        """Whether the user speaks in this block. `audible`: the reply was not silent in it."""
        self._learnt += audible
        self._quiet = 0 if audible else self._quiet + 1
        power = _bands(self._rest, rest)
        self._masking = np.maximum(_bands(self._echo, echo), _TAIL * self._masking)
        self._rest, self._echo = rest, echo
        self._noise = np.minimum(_NOISE_RISE * self._noise, power + _LEAST)
        limit = self._factor() * self._masking + _NOISE * self._noise + _LEAST
        share = float((power > limit).mean())
        self._recent.append(share >= _BANDS_TO_OPEN)
        if sum(self._recent) >= 2 or (self._since < _HOLD and share >= _BANDS_TO_STAY):
            self._since = 0
        else:
            self._since += 1
        deaf = self._learnt < _DEAF and self._quiet < _ECHO_GONE
        return self._since < _HOLD and not deaf

    @property
    def learnt(self) -> bool:
        """Enough of a reply went by to judge."""
        return self._learnt >= _LEARNT

    def forget(self) -> None:
        """The echo path has changed: what was learnt is worth no more than at the start."""
        self._learnt = 0

    def _factor(self) -> float:
        return _LOUDER if self._learnt >= _LEARNT else _LOUDER_AT_FIRST


def _bands(before: Samples, block: Samples) -> _Bands:
    spectrum = np.fft.rfft(np.concatenate((before, block)) * _WINDOW)[: _EDGES[-1]]
    power = np.add.reduceat(np.abs(spectrum) ** 2, _EDGES[:-1])
    return np.asarray(power / (2 * BLOCK * 600), np.float64)
