"""The only source of time. Seconds, monotonic; a wall clock that is stepped changes nothing here."""

import asyncio
import heapq
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What stages ask for time."""

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    async def sleep_until(self, deadline: float) -> None:
        """Return at `deadline`, at once when it has passed."""
        ...


class MonotonicClock:
    """The machine's monotonic clock, the same one the asyncio loop runs on."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep_until(self, deadline: float) -> None:
        await asyncio.sleep(max(0.0, deadline - time.monotonic()))


def wall_time() -> str:
    """The date and time for people to read, ISO 8601 in UTC; never used to measure anything."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class VirtualClock:
    """Time for tests and replays: stands still until `advance` moves it, waking sleepers in order."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._working = 0
        self._rested = asyncio.Event()

    def now(self) -> float:
        return self._now

    async def sleep_until(self, deadline: float) -> None:
        if deadline <= self._now:
            return
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (deadline, next(self._order), wake))
        await wake

    async def advance(self, seconds: float) -> None:
        """Move time on, letting everything that became runnable run after each wake-up."""
        await self.advance_to(self._now + seconds)

    async def advance_to(self, end: float) -> None:
        """The same, to a moment; one that has passed only lets run what can."""
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            deadline, _, wake = heapq.heappop(self._sleepers)
            self._now = max(self._now, deadline)
            if not wake.done():
                wake.set_result(None)
            await self._settle()
        self._now = max(self._now, end)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Around work that takes real time: none passes here meanwhile."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1
            if not self._working:
                self._rested.set()

    async def _settle(self) -> None:
        await _settle()
        while self._working:
            self._rested.clear()
            await self._rested.wait()
            await _settle()


async def _settle() -> None:
    # A chain of callbacks may need several passes of the loop; tests' chains are shorter than this.
    for _ in range(20):
        await asyncio.sleep(0)
