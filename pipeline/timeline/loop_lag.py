"""How late the event loop is: everything that is paced here is late by as much."""

from collections import deque
from collections.abc import Sequence

from pipeline.clock import Clock

EVERY = 0.05
"""Seconds between two looks."""

NOTED = 0.02
"""Seconds of lag from which on it is remembered."""

_KEPT = 1024


class LoopLag:
    """One for a process: `watch` is a task of its scope."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spans: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self.worst = 0.0
        """Seconds, since it was last read by `take_worst`."""

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            due = self._clock.now() + EVERY
            await self._clock.sleep_until(due)
            self.note(due, self._clock.now())

    def note(self, due: float, ran: float) -> None:
        """Something that was due at one time ran at another."""
        self.worst = max(self.worst, ran - due)
        if ran - due >= NOTED:
            self._spans.append((due, ran))

    def recent(self) -> Sequence[tuple[float, float]]:
        """From when to when it stood still, oldest first."""
        return tuple(self._spans)

    def take_worst(self) -> float:
        """The worst lag since this was last asked, seconds."""
        worst, self.worst = self.worst, 0.0
        return worst
