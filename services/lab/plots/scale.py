"""From values to places on an axis, and the round values that are written beside it."""

import math
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear; `low` lies at `start`, `high` at `end`, in units of the picture."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def step(span: float, most: int) -> float:
    """The smallest round step that divides a span into at most so many. Of 0: 1."""
    if span <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(size * power for size in _STEPS if span / (size * power) <= most + 1e-9)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values from `low` to `high`, both included where they are round."""
    size = step(high - low, most)
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    return [number * size for number in range(first, last + 1)]


def rounded(low: float, high: float, most: int = 6) -> tuple[float, float]:
    """A range of round ends that holds `low` and `high` and is wider than nothing."""
    size = step(high - low, most)
    low, high = math.floor(low / size + 1e-9) * size, math.ceil(high / size - 1e-9) * size
    return (low, high) if high > low else (low, low + size)
