"""Which way a turn goes through a split engine, decided before anything of it is read."""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.clock import Clock
from pipeline.llm.contract import Contract, TurnClass


class Way(StrEnum):
    SPLIT = "split"
    """One worker reads, the other answers."""
    PREFILL_ALONE = "prefill_alone"
    """The worker that reads prompts also answers: it holds the conversation's prefix."""
    DECODE_ALONE = "decode_alone"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class Choice:
    way: Way
    why: str
    fallback: bool = False
    """It is not the way that such turns go when all is well."""


class Part(StrEnum):
    """What of a split can be healthy by itself: a good prefill beside a dead decode is no good route."""

    PREFILL = "prefill"
    DECODE = "decode"
    TRANSFER = "transfer"


FAILURES = 3
"""In a row, after which a part is left alone."""

REST = 5.0
"""Seconds for which it is; then it is tried again, and one more failure is enough."""


class Circuit:
    """Whether one part is worth a try (a circuit breaker: M. Nygard, Release It!, 2007)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._until = float("-inf")

    @property
    def closed(self) -> bool:
        """The part may be used."""
        return self._failures < FAILURES or self._clock.now() >= self._until

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        self._until = self._clock.now() + REST


class Routing:
    """One split engine's, shared by all conversations that go there."""

    def __init__(self, contract: Contract, clock: Clock, *, alone: bool) -> None:
        """`alone`: where one worker fails, the other may do both."""
        self._contract = contract
        self._alone = alone
        self.health = {part: Circuit(clock) for part in Part}

    def choose(self, turn: TurnClass) -> Choice:
        """The way of a turn, and why."""
        if (outside := self._contract.workload.outside(turn)) is not None:
            return Choice(Way.PREFILL_ALONE, outside)
        for part, other in _WITHOUT.items():
            if not self.health[part].closed:
                return self.without(other, f"{part} has failed lately")
        return Choice(Way.SPLIT, f"contract {self._contract.name} takes it")

    def without(self, other: Way, why: str) -> Choice:
        """The other way, where the split does not do, if the contract allows it."""
        if self._alone:
            return Choice(other, why, fallback=True)
        return Choice(Way.NOWHERE, f"{why}, and the contract allows no other way", fallback=True)


_WITHOUT = {
    Part.DECODE: Way.PREFILL_ALONE,
    Part.PREFILL: Way.DECODE_ALONE,
    Part.TRANSFER: Way.PREFILL_ALONE,
}
"""The way around a part."""
