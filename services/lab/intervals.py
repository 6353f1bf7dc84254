"""Numbers with their uncertainty: Wilson's interval, bootstrap percentiles, Theil–Sen slopes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

_Z95 = 1.959964
_RESAMPLES = 4000
_SLOPE_RESAMPLES = 400


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def rounded(self, digits: int) -> dict[str, float]:
        """For a report: {"value", "low", "high"}."""
        return {name: round(number, digits) for name, number in asdict(self).items()}


def wilson(hits: int, trials: int) -> Estimate:
    """A share and its 95 % Wilson score interval (Wilson 1927). Raises ValueError without a trial."""
    if not 0 <= hits <= trials or trials == 0:
        raise ValueError(f"{hits} of {trials} is no share")
    share, z2 = hits / trials, _Z95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z95 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return Estimate(share, max(0.0, centre - half), min(1.0, centre + half))


def spread(values: Sequence[float]) -> dict[str, Any]:
    """n, median, p90, p95, min and max of milliseconds; {"n": 0} of nothing."""
    if not len(values):
        return {"n": 0}
    low, median, p90, p95, high = np.percentile(np.asarray(values, np.float64), (0, 50, 90, 95, 100))
    named = {"median": median, "p90": p90, "p95": p95, "min": low, "max": high}
    return {"n": len(values), **{name: round(float(value), 1) for name, value in named.items()}}


def ratio(a: Sequence[float], b: Sequence[float], percentile: float = 50, *, seed: int = 1) -> Estimate:
    """A percentile of `a` over that of `b`; the interval is the bootstrap's (percentile method)."""
    return _compared(a, b, percentile, lambda x, y: x / y, seed)


def difference(a: Sequence[float], b: Sequence[float], percentile: float = 50, *, seed: int = 1) -> Estimate:
    """A percentile of `a` minus that of `b`, likewise."""
    return _compared(a, b, percentile, lambda x, y: x - y, seed)


def slope(x: Sequence[float], y: Sequence[float], *, seed: int = 1) -> Estimate:
    """Theil and Sen's slope of y over x, the median of all pairs', with a bootstrap interval.

    Unlike least squares it shrugs off a few outliers. Raises ValueError for fewer than three points.
    """
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(xs) < 3 or len(xs) != len(ys):
        raise ValueError(f"{len(xs)} points have no slope worth an interval")
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(_SLOPE_RESAMPLES):
        chosen = rng.integers(0, len(xs), len(xs))
        drawn.append(_theil_sen(xs[chosen], ys[chosen]))
    low, high = np.nanpercentile(drawn, (2.5, 97.5))
    return Estimate(_theil_sen(xs, ys), float(low), float(high))


def _compared(
    a: Sequence[float],
    b: Sequence[float],
    percentile: float,
    how: Callable[[Values, Values], Values],
    seed: int,
) -> Estimate:
    if not len(a) or not len(b):
        raise ValueError("nothing to compare")
    rng = np.random.default_rng(seed)
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    drawn = how(_resampled(first, percentile, rng), _resampled(second, percentile, rng))
    low, high = np.percentile(drawn, (2.5, 97.5))
    value = how(np.percentile(first, [percentile]), np.percentile(second, [percentile]))
    return Estimate(float(value[0]), float(low), float(high))


def _resampled(values: Values, percentile: float, rng: np.random.Generator) -> Values:
    chosen = rng.integers(0, len(values), (_RESAMPLES, len(values)))
    drawn: Values = np.percentile(values[chosen], percentile, axis=1)
    return drawn


def _theil_sen(x: Values, y: Values) -> float:
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    apart = run != 0
    if not apart.any():
        return math.nan
    return float(np.median((y[second] - y[first])[apart] / run[apart]))
