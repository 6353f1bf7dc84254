"""Moments in speech after which nothing may follow."""

from collections import deque

_AGO = 5
"""Windows of the voice activity detector, 160 ms: about a syllable."""

_FALL = 0.25
"""Of that syllable's power, −6 dB: the tail of a word, long before a detector is sure of silence."""

_FAINT = 0.03
"""Of the loudest power; what was below that was no syllable."""


class Lulls:
    """Fed with the power of every window. In speech there are about three lulls a second, and the
    last lies 60 ms before the end of speech in the median of 49 utterances."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=_AGO)

    def observe(self, power: float, loudest: float) -> bool:
        """Whether the voice falls away in this window; `loudest` is the utterance's highest power."""
        self._recent.append(power)
        peak = max(self._recent)
        return peak > _FAINT * loudest and power < _FALL * peak
