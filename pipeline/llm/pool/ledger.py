"""What of a decode pool is promised to whom: reserved before a prefill starts, released exactly once."""

import math
from dataclasses import dataclass
from typing import Protocol


class Capacity(Protocol):
    """What a pool can hold, in units of its own."""

    @property
    def total(self) -> int: ...

    def cost(self, tokens: int) -> int | None:
        """Units that a sequence of so many tokens takes; None when it never fits."""
        ...


@dataclass(frozen=True, slots=True)
class Slots:
    """llama.cpp's: so many sequences, each with a context of its own."""

    total: int
    context: int
    """Tokens per slot."""

    def cost(self, tokens: int) -> int | None:
        return 1 if tokens <= self.context else None


@dataclass(frozen=True, slots=True)
class Blocks:
    """vLLM's: whole blocks of one store."""

    total: int
    block: int
    """Tokens per block."""

    def cost(self, tokens: int) -> int | None:
        units = math.ceil(tokens / self.block)
        return units if units <= self.total else None


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Room for one request."""

    request: str
    units: int


class Ledger:
    """Authoritative where the pool's engine is ours; elsewhere advice, to be compared with its metrics."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._held: set[Reservation] = set()
        self._reserved = 0

    @property
    def capacity(self) -> Capacity:
        return self._capacity

    @property
    def free(self) -> int:
        """Units."""
        return self._capacity.total - self._reserved

    @property
    def held(self) -> int:
        """Reservations."""
        return len(self._held)

    def reserve(self, request: str, tokens: int) -> Reservation | None:
        """None when there is no room now. Raises ValueError for what can never fit."""
        units = self._capacity.cost(tokens)
        if units is None:
            raise ValueError(f"{tokens} tokens never fit")
        if units > self.free:
            return None
        reservation = Reservation(request, units)
        self._held.add(reservation)
        self._reserved += units
        return reservation

    def release(self, reservation: Reservation) -> bool:
        """False when it was released before, or lost with its worker."""
        if reservation not in self._held:
            return False
        self._held.remove(reservation)
        self._reserved -= reservation.units
        return True

    def lose_all(self) -> int:
        """The pool's worker is gone and what it held with it; returns how many reservations were."""
        lost = len(self._held)
        self._held.clear()
        self._reserved = 0
        return lost
