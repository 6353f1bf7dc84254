"""Who is let into a decode pool, decided before any prefill starts.

Room for the prompt and the longest output is reserved first. Where there is none, a turn waits in a
bounded queue, live conversations before everything else, as long as it can still be answered in time;
where it cannot, it is sent elsewhere or refused, honestly and at once.

The ledger is authoritative where the pool's engine is ours and we alone use it; the engine's own word (a
place that its gate refuses) goes before it in any case.
"""

import asyncio
import bisect
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import AdmissionRefusedError
from pipeline.llm.pool.ledger import Ledger, Reservation
from pipeline.llm.pool.rates import Rates


class Priority(IntEnum):
    """Lower goes first."""

    LIVE = 0
    BACKGROUND = 1


class Verdict(StrEnum):
    ADMIT = "admit"
    QUEUE = "queue"
    ELSEWHERE = "elsewhere"
    """Another route would be in time."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Demand:
    """What a turn asks of a pool."""

    request: str
    unread: int
    """Prompt tokens that have to be prefilled."""
    prompt: int
    """All of them."""
    output: int
    """At most."""
    priority: Priority = Priority.LIVE
    first_token_within: float = 20.0
    """Seconds."""

    @property
    def tokens(self) -> int:
        return self.prompt + self.output


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of a demand, and why; kept as evidence."""

    verdict: Verdict
    why: str
    predicted_first_token: float | None
    """Seconds; None while nothing was measured yet."""


@dataclass(order=True, slots=True)
class _Waiting:
    priority: Priority
    order: int
    demand: Demand = field(compare=False)
    granted: asyncio.Future[Reservation] = field(compare=False)


class Admission:
    """One decode pool's. All of it happens on one event loop."""

    def __init__(self, ledger: Ledger, rates: Rates, clock: Clock, *, queue: int, wait: float) -> None:
        """At most `queue` demands wait, each for at most `wait` seconds."""
        self._ledger = ledger
        self._rates = rates
        self._clock = clock
        self._most = queue
        self._longest = wait
        self._order = itertools.count()
        self._queue: list[_Waiting] = []
        self._worker: str | None = None

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def decide(self, demand: Demand, *, elsewhere: bool = False) -> Decision:
        """What would be done with a demand now. `elsewhere`: another route, no faster one, would take it."""
        away = Verdict.ELSEWHERE if elsewhere else Verdict.REFUSE
        predicted = self._rates.first_token(demand.unread)
        if predicted is not None and predicted > demand.first_token_within:
            return Decision(Verdict.REFUSE, _late(predicted, demand), predicted)
        if self._ledger.capacity.cost(demand.tokens) is None:
            return Decision(away, f"{demand.tokens} tokens never fit", predicted)
        ahead = [each for each in self._queue if each.priority <= demand.priority]
        if not ahead and self._fits(demand):
            return Decision(Verdict.ADMIT, "there is room", predicted)
        if len(self._queue) >= self._most and not self._displaced(demand):
            return Decision(away, f"{len(self._queue)} wait already", predicted)
        wait = self._rates.room(len(ahead) + 1, self._ledger.held) or 0.0
        if wait > self._longest:
            return Decision(away, f"no room before {wait:.1f} s", predicted)
        if predicted is not None and (predicted := predicted + wait) > demand.first_token_within:
            return Decision(away, _late(predicted, demand), predicted)
        return Decision(Verdict.QUEUE, f"no room; {len(ahead)} go first", predicted)

    @asynccontextmanager
    async def admitted(self, demand: Demand) -> AsyncIterator[Reservation]:
        """Room for as long as the context lasts, waited for if need be. Raises AdmissionRefusedError."""
        decision = self.decide(demand)
        if decision.verdict is Verdict.REFUSE:
            raise AdmissionRefusedError(decision.why)
        reservation = await self._granted(demand)
        begun = self._clock.now()
        try:
            yield reservation
        finally:
            if self._ledger.release(reservation):
                self._rates.held(self._clock.now() - begun)
            self._grant()

    def serves(self, worker: str) -> None:
        """The pool's worker, by its address. A successor has a new one: what its predecessor held is void,
        and whoever waited is let in; turns that were under way there find out by themselves."""
        if self._worker is not None and worker != self._worker:
            self._ledger.lose_all()
            self._grant()
        self._worker = worker

    def _fits(self, demand: Demand) -> bool:
        units = self._ledger.capacity.cost(demand.tokens)
        return units is not None and units <= self._ledger.free

    def _displaced(self, demand: Demand) -> _Waiting | None:
        """Who would have to leave a full queue for this demand: the last of those less urgent."""
        last = self._queue[-1] if self._queue else None
        return last if last is not None and last.priority > demand.priority else None

    async def _granted(self, demand: Demand) -> Reservation:
        if len(self._queue) >= self._most and (last := self._displaced(demand)) and not self._fits(demand):
            self._refuse(last, "somebody in a conversation came")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(demand.priority, next(self._order), demand, loop.create_future())
        bisect.insort(self._queue, waiting)
        self._grant()
        timer = loop.create_task(self._clock.sleep_until(self._clock.now() + self._longest))
        try:
            first: set[asyncio.Future[Any]] = {waiting.granted, timer}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.granted.done():
                raise AdmissionRefusedError(f"no room within {self._longest:g} s")
            return waiting.granted.result()
        except asyncio.CancelledError:
            # Granted and cancelled in the same turn of the loop: nobody else would give it back.
            if waiting.granted.done() and not waiting.granted.exception():
                self._ledger.release(waiting.granted.result())
            raise
        finally:
            timer.cancel()
            if waiting in self._queue:
                self._queue.remove(waiting)
            self._grant()

    def _refuse(self, waiting: _Waiting, why: str) -> None:
        self._queue.remove(waiting)
        waiting.granted.set_exception(AdmissionRefusedError(why))

    def _grant(self) -> None:
        """Let in who comes next, in order: a large one is not overtaken by small ones for ever."""
        while self._queue and self._fits(self._queue[0].demand):
            waiting = self._queue.pop(0)
            reservation = self._ledger.reserve(waiting.demand.request, waiting.demand.tokens)
            assert reservation is not None
            waiting.granted.set_result(reservation)


def _late(predicted: float, demand: Demand) -> str:
    return f"a first token in {predicted:.1f} s, wanted within {demand.first_token_within:g} s"
