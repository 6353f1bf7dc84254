"""When a client played or showed something: reports of single moments → the time of any pts."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence

from pipeline.timeline.ledger import KEPT


class Presentation:
    """Fed with pairs of pts and our time, as they are reported.

    From one report to the next a client goes on at the nominal rate. Where the next one is later than that,
    sound was made up somewhere between them: taken to be right before it. Where it is earlier, a client
    that was behind caught up by leaving sound out: taken to be spread between them.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._points: deque[tuple[int, float]] = deque()

    def add(self, pts: int, at: float) -> None:
        """One that is not later than the newest, in either, is ignored, but for a new connection's."""
        if self._points and at <= self._points[-1][1]:
            return
        if self._points and pts <= self._points[-1][0]:
            if pts > self._points[-1][0] - self._rate:
                return
            self._points.clear()
        self._points.append((pts, at))
        while self._points[0][1] < at - KEPT:
            self._points.popleft()

    def time_of(self, pts: int) -> float | None:
        """When it was presented; None before the first report."""
        index = bisect_left(self._points, pts, key=lambda point: point[0])
        if index < len(self._points) and self._points[index][0] == pts:
            return self._points[index][1]
        if index == 0:
            return None
        known, at = self._points[index - 1]
        nominal = at + (pts - known) / self._rate
        if index == len(self._points):
            return nominal
        later, until = self._points[index]
        return min(nominal, at + (until - at) * (pts - known) / (later - known))

    def seen(self, pts: int) -> float | None:
        """When exactly this was presented; None where no report names it."""
        index = bisect_left(self._points, pts, key=lambda point: point[0])
        found = index < len(self._points) and self._points[index][0] == pts
        return self._points[index][1] if found else None

    def times(self, start: float, end: float, before: int = 0) -> Sequence[float]:
        """When something was presented: so many before, between two moments, and next after them."""
        times = [at for _, at in self._points]
        return times[max(0, bisect_left(times, start) - before) : bisect_right(times, end) + 1]

    def around(self, start: float, end: float) -> tuple[int | None, int | None]:
        """The pts presented last by one moment and first from another on."""
        before = [pts for pts, at in self._points if at <= start + 1e-6]
        after = [pts for pts, at in self._points if at >= end - 1e-6]
        return before[-1] if before else None, after[0] if after else None

    @property
    def newest(self) -> float | None:
        """The time of the newest report."""
        return self._points[-1][1] if self._points else None
