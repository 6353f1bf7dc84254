"""What a soak has come to so far. It is filled as it goes, so that an early end loses nothing."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.clock import Clock
from services.lab.network.relay import Relay
from services.lab.soak.options import Options

Record = Mapping[str, Any]
"""A turn as in turns.json, with what `Plan.marked` adds."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The server and we ourselves at a moment. None is what cannot be seen."""

    at_s: float
    """Since users began to call."""
    rss_mb: float | None
    """Of the server and its children."""
    threads: int | None
    descriptors: int | None
    server_cores: float | None
    """Used since the sample before."""
    client_cores: float | None
    loop_lag_ms: float | None
    """How late the server's event loop was, by its own /metrics."""
    client_loop_lag_ms: float | None
    """How late ours was at worst since the sample before: what is stamped here is late by as much."""


@dataclass(slots=True)
class Findings:
    records: list[Record] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    packets: Counter[tuple[str, str]] = field(default_factory=Counter)
    """("up" or "down", "carried" or "lost") → how many, by relays."""
    began: float | None = None
    """When users began to call, on our clock."""
    ended: float | None = None
    stopped_by: str | None = None
    """Name of the signal that ended it early."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What all users of a soak share."""

    options: Options
    url: str
    clock: Clock
    began: float
    findings: Findings
    on_record: Callable[[Record], None]

    def rounds(self) -> Iterator[int]:
        """The turns that one user has to take, until there are enough, or time is up."""
        number = 0
        while self._goes_on(number):
            yield number
            number += 1

    def rng(self, number: int) -> np.random.Generator:
        """A user's own choices, the same ones for the same seed; the lines were chosen with number 0."""
        return np.random.default_rng((self.options.seed, 1 + number))

    def keep(self, record: Record) -> None:
        self.findings.records.append(record)
        self.on_record(record)

    @asynccontextmanager
    async def relay(self, rng: np.random.Generator) -> AsyncIterator[Relay | None]:
        """The network of one call, whose packets are counted at its end; None without --network."""
        profile = self.options.profile
        if profile is None:
            yield None
            return
        async with Relay(profile, self.clock, int(rng.integers(1 << 31))) as relay:
            try:
                yield relay
            finally:
                for direction, counts in relay.counts().items():
                    for fate, count in counts.items():
                        self.findings.packets[direction, fate] += count

    def marked(
        self, record: Record, *, user: int, at: float, said: str, error: str | None = None
    ) -> dict[str, Any]:
        """A record with whose it is and when, on our clock, what it answers had been said."""
        return {
            **record,
            "client": self.options.client,
            "user": user,
            "at_s": round(at - self.began, 3),
            "said": said,
            "error": error,
        }

    def _goes_on(self, number: int) -> bool:
        turns, seconds = self.options.turns, self.options.seconds
        if turns is not None and number >= turns:
            return False
        return seconds is None or self.clock.now() < self.began + seconds
