"""Two clocks, a client's and ours, tied by messages that are stamped where they leave and arrive.

NTP's arithmetic (RFC 5905, section 8): a request and its answer give the offset to half of the time that
both were under way. The way there and back may differ, so that half is also the bound of the error. It
grows with a sample's age, for the clocks may drift apart meanwhile (NTP's root distance, section 11.2.1);
the sample with the least bound now is the best one. Crystals part by up to 100 ppm, so over a minute the
drift between the two is fitted as well.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

WINDOW = 60.0
"""Seconds for which a sample counts."""

_MOST_DRIFT = 3e-4
"""Seconds a second; two crystals differ by a third of that. More is a fit to noise."""

_FIT_OVER = 10.0
"""Seconds that samples must span before a drift is fitted to them."""

_GOOD = 2.0
"""Samples whose bound is within this factor of the best one's are fitted."""


@dataclass(frozen=True, slots=True)
class ClockSample:
    """One request and its answer; seconds, of the client's clock and of ours."""

    asked: float
    """Client: the request left."""
    received: float
    """Ours: it came."""
    answered: float
    """Ours: the answer left."""
    returned: float
    """Client: it came."""

    @property
    def offset(self) -> float:
        """Our clock less the client's."""
        return ((self.received - self.asked) + (self.answered - self.returned)) / 2

    @property
    def bound(self) -> float:
        """How far off `offset` may be, at most."""
        return max(0.0, (self.returned - self.asked) - (self.answered - self.received)) / 2

    @property
    def middle(self) -> float:
        """The client's time that it holds for."""
        return (self.asked + self.returned) / 2


class ClockTie:
    """What a client's clock shows → what ours showed then."""

    def __init__(self) -> None:
        self._samples: deque[ClockSample] = deque()
        self._best: ClockSample | None = None
        self._drift = 0.0

    def add(self, sample: ClockSample) -> None:
        """Samples in the order they were taken. One that goes back in time is ignored."""
        if sample.returned < sample.asked or sample.answered < sample.received:
            return
        if self._samples and sample.returned < self._samples[-1].returned:
            return
        self._samples.append(sample)
        while self._samples[0].returned < sample.returned - WINDOW:
            self._samples.popleft()
        self._drift = self._fitted()
        self._best = min(self._samples, key=self._bound_now)

    def ours(self, client_time: float) -> float | None:
        """None until there is a sample."""
        if self._best is None:
            return None
        return client_time + self._best.offset + self._drift * (client_time - self._best.middle)

    @property
    def bound(self) -> float | None:
        """Seconds by which `ours` may be off at the newest sample; a reported number carries it."""
        return None if self._best is None else self._bound_now(self._best)

    @property
    def drift(self) -> float:
        """Seconds by which our clock gains on the client's in one of its seconds; 0 while not known."""
        return self._drift

    def _bound_now(self, sample: ClockSample) -> float:
        age = self._samples[-1].returned - sample.returned
        return sample.bound + age * (_MOST_DRIFT if self._drift == 0.0 else _MOST_DRIFT / 10)

    def _fitted(self) -> float:
        shortest = min(each.bound for each in self._samples)
        good = [each for each in self._samples if each.bound <= _GOOD * shortest + 1e-4]
        if good[-1].middle - good[0].middle < _FIT_OVER or len(good) < 4:
            return 0.0
        times = np.array([each.middle for each in good]) - good[0].middle
        slope = float(np.polyfit(times, [each.offset for each in good], 1)[0])
        # What the samples' own bounds could explain is no drift.
        explained = 2 * max(each.bound for each in good) / (good[-1].middle - good[0].middle)
        return slope if explained < abs(slope) <= _MOST_DRIFT else 0.0
