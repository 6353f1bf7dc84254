"""Which conversation has which slot of an engine."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from pipeline.errors import ServerFullError


class SlotLeases:
    """Lends an engine's slots, one to a conversation, so that each finds its own cache warm and no other's.

    A slot is erased when it is lent: whatever its last user left is gone before the next one's first
    prompt, also when the last user's process never got to say goodbye.
    """

    def __init__(self, slots: int, erase: Callable[[int], Awaitable[object]]) -> None:
        """`erase` empties a slot of the engine by number, 0 to slots - 1."""
        self._erase = erase
        self._free = deque(range(slots))
        self._slots = slots

    @property
    def free(self) -> int:
        return len(self._free)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[int]:
        """A slot for as long as the context lasts. Raises ServerFullError, and what `erase` raises."""
        if not self._free:
            raise ServerFullError(
                f"the language model holds {self._slots} conversations at once, and has them"
            )
        # The one free for longest: a cancelled request of its last user has most likely ended.
        slot = self._free.popleft()
        try:
            await self._erase(slot)
            yield slot
        finally:
            self._free.append(slot)
