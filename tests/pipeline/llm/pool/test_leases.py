import asyncio
from contextlib import AsyncExitStack

import pytest

from pipeline.errors import LanguageModelError, ServerFullError
from pipeline.llm.pool.leases import SlotLeases


class Engine:
    """Notes what is erased; fails or stands still when told to."""

    def __init__(self) -> None:
        self.erased: list[int] = []
        self.asked = asyncio.Event()
        self.fails = False
        self.stalls = False

    async def erase(self, slot: int) -> None:
        self.erased.append(slot)
        self.asked.set()
        if self.stalls:
            await asyncio.Event().wait()
        if self.fails:
            raise LanguageModelError("down")


async def test_every_slot_is_lent_once_and_erased_first() -> None:
    engine = Engine()
    leases = SlotLeases(3, engine.erase)
    async with AsyncExitStack() as stack:
        assert sorted([await stack.enter_async_context(leases.lease()) for _ in range(3)]) == [0, 1, 2]
        assert leases.free == 0
        assert sorted(engine.erased) == [0, 1, 2]
        with pytest.raises(ServerFullError, match="3 conversations"):
            await stack.enter_async_context(leases.lease())
    assert leases.free == 3


async def test_a_returned_slot_is_erased_for_the_next() -> None:
    engine = Engine()
    leases = SlotLeases(1, engine.erase)
    for _ in range(3):
        async with leases.lease() as slot:
            assert slot == 0
    assert engine.erased == [0, 0, 0]
    assert leases.free == 1


async def test_a_slot_comes_back_once_also_after_an_error() -> None:
    leases = SlotLeases(2, Engine().erase)
    with pytest.raises(ZeroDivisionError):
        async with leases.lease():
            raise ZeroDivisionError
    assert leases.free == 2


async def test_a_slot_that_cannot_be_erased_is_not_lent_and_not_lost() -> None:
    engine = Engine()
    engine.fails = True
    leases = SlotLeases(1, engine.erase)
    with pytest.raises(LanguageModelError):
        await leases.lease().__aenter__()
    assert leases.free == 1


async def test_a_cancelled_wait_gives_the_slot_back() -> None:
    engine = Engine()
    engine.stalls = True
    leases = SlotLeases(1, engine.erase)

    async def lease() -> None:
        async with leases.lease():
            pytest.fail("lent without having been erased")

    task = asyncio.create_task(lease())
    await engine.asked.wait()
    assert leases.free == 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert leases.free == 1
