"""One direction of a network: what becomes of each packet."""

import math

import numpy as np

from pipeline.clock import Clock
from services.lab.network.profiles import Profile


class Link:
    """Decides, and neither carries nor waits. The same seed loses the same packets, whenever they come."""

    def __init__(self, profile: Profile, clock: Clock, rng: np.random.Generator) -> None:
        self.carried = 0
        """Packets that came out or will."""
        self.lost = 0
        self._profile = profile
        self._clock = clock
        self._rng = rng
        self._bad = False
        self._idle_from = -math.inf
        """When the last packet will have left a sender of limited rate."""
        self._newest = -math.inf
        """When the last packet comes out."""
        self._blocked_until = -math.inf
        self._late_until = -math.inf
        self._late_by = 0.0

    def passage(self, size: int) -> float | None:
        """When a packet of `size` bytes that is sent now comes out, on the clock; None when it is lost."""
        now = self._clock.now()
        unlucky, extra = self._unlucky(), float(self._rng.exponential(self._profile.jitter))
        leaves = self._leaves(now, size)
        if unlucky or leaves is None or now < self._blocked_until:
            self.lost += 1
            return None
        if now < self._late_until:
            extra += self._late_by
        self.carried += 1
        self._newest = max(self._newest, leaves + self._profile.delay + extra)
        return self._newest

    def block(self, seconds: float) -> None:
        """Lose every packet from now on for so long."""
        self._blocked_until = self._clock.now() + seconds

    def delay(self, by: float, seconds: float) -> None:
        """Make packets of the next `seconds` late `by` so much; those that follow queue up behind them."""
        self._late_by, self._late_until = by, self._clock.now() + seconds

    def _unlucky(self) -> bool:
        loss = self._profile.loss
        turn, fate = self._rng.random(2)
        self._bad = turn >= loss.turns_good if self._bad else turn < loss.turns_bad
        return bool(fate < (loss.bad if self._bad else loss.good))

    def _leaves(self, now: float, size: int) -> float | None:
        """When its last bit is sent; None when the queue before it is too long."""
        if self._profile.rate is None:
            return now
        begins = max(now, self._idle_from)
        if begins - now > self._profile.queue:
            return None
        self._idle_from = begins + size * 8 / self._profile.rate
        return self._idle_from
