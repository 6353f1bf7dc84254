"""Render freezes and stalls, from when pictures were presented (docs/metrics.md)."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

STALL = 0.12
"""Seconds between two presented pictures from which on it is a stall."""

_AVERAGED = 30
_LONGER = 0.15

WANTED = _AVERAGED + 1
"""Pictures from before a time that the rule needs to know of, to judge from there on."""


@dataclass(frozen=True, slots=True)
class Still:
    """A picture that stood for too long; `w3c`: long enough for a freeze by the W3C's rule."""

    at: float
    duration: float
    w3c: bool


def stills(presented: Sequence[float], hang_up: float | None = None) -> list[Still]:
    """Stalls and freezes, oldest first.

    The W3C's rule (webrtc-stats, freezeCount): a picture that comes max(3 × average, average + 150 ms) or
    more after the one before, the average over the last 30 gaps. Browsers notice a freeze when it ends, and
    never the one that a call ends in; `hang_up` closes that one.
    """
    recent: deque[float] = deque(maxlen=_AVERAGED)
    found: list[Still] = []
    for earlier, later, ends in _gaps(presented, hang_up):
        gap = later - earlier
        average = sum(recent) / len(recent) if recent else None
        frozen = len(recent) == _AVERAGED and gap >= max(3 * average, average + _LONGER)  # type: ignore
        if frozen or gap >= STALL:
            found.append(Still(earlier, gap, frozen))
        if ends:
            recent.append(gap)
    return found


def _gaps(presented: Sequence[float], hang_up: float | None) -> Iterable[tuple[float, float, bool]]:
    for earlier, later in pairwise(presented):
        yield earlier, later, True
    if presented and hang_up is not None and hang_up > presented[-1]:
        yield presented[-1], hang_up, False
