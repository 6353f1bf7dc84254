"""The server from outside, every few seconds: what it holds, what it uses, how late its event loop is."""

import asyncio
import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

from pipeline.clock import Clock
from pipeline.timeline.loop_lag import LoopLag
from services.lab.machine import ServerProcesses, Usage, shares
from services.lab.soak.findings import Sample

EVERY = 2.0
"""Seconds between two samples."""

_ANSWER_WITHIN = 1.0
"""Seconds for the server's metrics; a server too busy for that has a sample without them."""

_LOOP_LAG = re.compile(r"^visavis_loop_lag_seconds(?:\{[^}]*\})? (\S+)", re.MULTILINE)


class Observer:
    """Watches the server at `url`. A server on another machine is seen by its metrics alone."""

    def __init__(self, url: str, clock: Clock, began: float, lag: LoopLag) -> None:
        self._url = url
        self._clock = clock
        self._began = began
        self._lag = lag
        self._before: Usage | None = None

    async def watch(self, take: Callable[[Sample], None]) -> None:
        """A sample every EVERY seconds, until cancelled."""
        # Reading of processes takes some ms each: on the loop it would make arrivals late.
        with ThreadPoolExecutor(1, thread_name_prefix="soak-resources") as executor:
            async with httpx.AsyncClient(timeout=_ANSWER_WITHIN) as http:
                loop = asyncio.get_running_loop()
                processes = await loop.run_in_executor(executor, ServerProcesses, self._url)
                due = self._clock.now()
                while True:
                    usage = await loop.run_in_executor(executor, processes.usage, self._clock.now())
                    take(self._sample(usage, await self._loop_lag(http)))
                    due = max(due + EVERY, self._clock.now())
                    await self._clock.sleep_until(due)

    def _sample(self, usage: Usage | None, loop_lag: float | None) -> Sample:
        used = shares(self._before, usage)
        self._before = usage
        return Sample(
            at_s=round(self._clock.now() - self._began, 3),
            rss_mb=None if usage is None else usage.rss_mb,
            threads=None if usage is None else usage.threads,
            descriptors=None if usage is None else usage.descriptors,
            server_cores=used["server_cores"],
            client_cores=used["client_cores"],
            loop_lag_ms=loop_lag,
            client_loop_lag_ms=round(self._lag.take_worst() * 1000, 1),
        )

    async def _loop_lag(self, http: httpx.AsyncClient) -> float | None:
        try:
            response = await http.get(f"{self._url}/metrics")
        except httpx.HTTPError:
            return None
        return loop_lag_ms(response.text) if response.status_code == 200 else None


def loop_lag_ms(metrics: str) -> float | None:
    """From Prometheus' text format, the worst of all that is exported; None when nothing is."""
    found = [float(value) for value in _LOOP_LAG.findall(metrics)]
    worst = max((value for value in found if math.isfinite(value)), default=None)
    return None if worst is None else round(worst * 1000, 1)
