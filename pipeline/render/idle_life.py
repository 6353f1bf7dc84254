"""What a living face does by itself: it drifts, blinks, looks about and breathes.

Everything is driven by the time it is asked for and a seed; the same questions get the same answers.
"""

import math
from random import Random

from pipeline.render.easing import ease

_MASK = (1 << 64) - 1


class Drift:
    """Smooth noise that never repeats: random values every `period` seconds, a smooth curve between.

    One-dimensional value noise; the values are a hash of their index (SplitMix64, Steele, Lea and
    Flood 2014), so that any time can be asked for without a state.
    """

    def __init__(self, seed: int, period: float) -> None:
        self._seed = seed & _MASK
        self._period = period

    def at(self, now: float) -> float:
        """-1 … 1."""
        steps = now / self._period
        index = math.floor(steps)
        t = steps - index
        a, b = self._value(index), self._value(index + 1)
        return a + (b - a) * t * t * t * (t * (6.0 * t - 15.0) + 10.0)

    def _value(self, index: int) -> float:
        z = (self._seed + (index + 1) * 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return (z ^ (z >> 31)) / _MASK * 2.0 - 1.0


class Blinks:
    """Blinks at random: one every 2 to 6 s, 150 to 200 ms long, now and then a double one.

    Adults blink 10 to 32 times a minute in conversation (Doughty, Optom. Vis. Sci. 78, 2001).
    """

    _DOUBLE_SHARE = 0.15
    _CLOSING, _SHUT = 0.38, 0.16
    """Parts of a blink: lids fall faster than they rise."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._start = -math.inf
        self._length = 0.2
        self._next: float | None = None
        self._again = False

    def closure(self, now: float) -> float:
        """0 open … 1 shut."""
        if self._next is None or now - self._next > 1.0:
            self._next = now + self._pause()
        if now >= self._next:
            self._start = self._next
            self._length = self._random.uniform(0.15, 0.2)
            double = not self._again and self._random.random() < self._DOUBLE_SHARE
            self._next += self._length + 0.06 if double else self._pause()
            self._again = double
        return self._lid((now - self._start) / self._length)

    def _pause(self) -> float:
        return min(6.0, 2.0 + self._random.expovariate(1 / 1.7))

    def _lid(self, t: float) -> float:
        if t >= 1.0:
            return 0.0
        if t < self._CLOSING:
            return ease(t / self._CLOSING)
        return ease((1.0 - t) / (1.0 - self._CLOSING - self._SHUT))


class Gaze:
    """Fixations joined by saccades of about 60 ms, as eyes move (they never glide)."""

    _SACCADE_S = 0.06

    def __init__(self, random: Random) -> None:
        self._random = random
        self._from = self._to = (0.0, 0.0)
        self._since = -math.inf
        self._next = -math.inf

    def look(self, now: float, focus: tuple[float, float], spread: float, pause: tuple[float, float]) -> None:
        """Turn to a point within `spread` of `focus` at once, and stay for a time within `pause`."""
        self._from = self.at(now)
        self._to = (
            focus[0] + self._random.uniform(-spread, spread),
            focus[1] + 0.6 * self._random.uniform(-spread, spread),
        )
        self._since = now
        self._next = now + self._random.uniform(*pause)

    def restless(self, now: float) -> bool:
        """Whether it is time to look somewhere else."""
        return now >= self._next

    def at(self, now: float) -> tuple[float, float]:
        moved = ease((now - self._since) / self._SACCADE_S)
        (x0, y0), (x1, y1) = self._from, self._to
        return x0 + (x1 - x0) * moved, y0 + (y1 - y0) * moved


class Nods:
    """The small nods of somebody who follows."""

    _LENGTH_S = 0.9

    def __init__(self, random: Random) -> None:
        self._random = random
        self._start: float | None = None

    def at(self, now: float) -> float:
        """0 upright … 1 at the bottom of a nod."""
        if self._start is None or now - self._start > self._LENGTH_S + 5.0:
            self._start = now + self._random.uniform(0.7, 1.6)
        elif now > self._start + self._LENGTH_S:
            self._start = now + self._random.uniform(1.8, 4.2)
        t = (now - self._start) / self._LENGTH_S
        return math.sin(math.pi * t) * math.sin(2 * math.pi * t) ** 2 if 0.0 < t < 1.0 else 0.0
