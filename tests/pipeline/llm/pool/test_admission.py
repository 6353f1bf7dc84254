"""Never over-committed, nothing leaks, whatever the interleaving of admit, finish, cancel, time-out, loss."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clock import VirtualClock
from pipeline.errors import AdmissionRefusedError
from pipeline.llm.pool.admission import Admission, Demand, Priority, Verdict
from pipeline.llm.pool.ledger import Blocks, Capacity, Ledger, Slots
from pipeline.llm.pool.rates import Rates

WAIT = 5.0

QUEUE = 3


def demand(name: str, tokens: int = 100, priority: Priority = Priority.LIVE, unread: int = 50) -> Demand:
    return Demand(name, unread, tokens - 20, 20, priority)


class Pool:
    """A pool with turns that hold their room until told."""

    def __init__(self, capacity: Capacity) -> None:
        self.clock = VirtualClock()
        self.rates = Rates()
        self.ledger = Ledger(capacity)
        self.admission = Admission(self.ledger, self.rates, self.clock, queue=QUEUE, wait=WAIT)
        self.turns: dict[str, asyncio.Task[None]] = {}
        self.finish: dict[str, asyncio.Event] = {}
        self.inside: list[str] = []
        self.workers = 0
        self.admission.serves("worker 0")

    async def begin(self, wanted: Demand) -> None:
        self.finish[wanted.request] = asyncio.Event()
        self.turns[wanted.request] = asyncio.create_task(self._turn(wanted))
        await settle()

    async def end(self, name: str) -> None:
        self.finish[name].set()
        await settle()

    async def cancel(self, name: str) -> None:
        self.turns[name].cancel()
        await settle()

    def lose(self) -> None:
        """The pool's worker, which another takes the place of."""
        self.workers += 1
        self.admission.serves(f"worker {self.workers}")

    async def over(self) -> None:
        for name in self.turns:
            await self.end(name)
        await self.clock.advance(WAIT + 1)
        await asyncio.gather(*self.turns.values(), return_exceptions=True)

    async def _turn(self, wanted: Demand) -> None:
        async with self.admission.admitted(wanted):
            self.inside.append(wanted.request)
            try:
                await self.finish[wanted.request].wait()
            finally:
                self.inside.remove(wanted.request)


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def test_room_is_there_or_waited_for() -> None:
    pool = Pool(Slots(1, 1000))
    await pool.begin(demand("a"))
    await pool.begin(demand("b"))
    assert pool.inside == ["a"]
    await pool.end("a")
    assert pool.inside == ["b"]
    await pool.over()
    assert (pool.ledger.free, pool.ledger.held, pool.admission.waiting) == (1, 0, 0)


async def test_conversations_go_before_everything_else() -> None:
    pool = Pool(Slots(1, 1000))
    await pool.begin(demand("a"))
    await pool.begin(demand("batch", priority=Priority.BACKGROUND))
    await pool.begin(demand("b"))
    await pool.end("a")
    assert pool.inside == ["b"]
    await pool.over()


async def test_a_full_queue_makes_room_for_a_conversation() -> None:
    pool = Pool(Slots(1, 1000))
    await pool.begin(demand("a"))
    for number in range(QUEUE):
        await pool.begin(demand(f"batch-{number}", priority=Priority.BACKGROUND))
    await pool.begin(demand("b"))
    await pool.begin(demand("batch-x", priority=Priority.BACKGROUND))
    for name in (f"batch-{QUEUE - 1}", "batch-x"):
        with pytest.raises(AdmissionRefusedError):
            await pool.turns[name]
    assert pool.admission.waiting == QUEUE
    await pool.over()


async def test_nobody_waits_for_ever() -> None:
    pool = Pool(Slots(1, 1000))
    await pool.begin(demand("a"))
    await pool.begin(demand("b"))
    await pool.clock.advance(WAIT + 0.1)
    with pytest.raises(AdmissionRefusedError, match="no room within 5 s"):
        await pool.turns["b"]
    await pool.over()


async def test_what_never_fits_is_refused_at_once() -> None:
    pool = Pool(Slots(2, 1000))
    await pool.begin(demand("a", 1001))
    with pytest.raises(AdmissionRefusedError, match="1001 tokens never fit"):
        await pool.turns["a"]
    await pool.over()


async def test_a_large_demand_is_not_overtaken_for_ever() -> None:
    pool = Pool(Blocks(10, 100))
    await pool.begin(demand("a", 600))
    await pool.begin(demand("large", 900))
    await pool.begin(demand("small", 100))
    assert pool.inside == ["a"]
    await pool.end("a")
    assert pool.inside == ["large", "small"]
    await pool.over()


async def test_a_lost_worker_loses_its_reservations_once() -> None:
    pool = Pool(Slots(1, 1000))
    await pool.begin(demand("a"))
    await pool.begin(demand("b"))
    pool.admission.serves("worker 0")
    assert pool.inside == ["a"]
    pool.lose()
    await settle()
    assert pool.inside == ["a", "b"], "the new worker's slot is b's; a's turn finds out by itself"
    await pool.end("a")
    assert pool.ledger.held == 1
    await pool.over()
    assert pool.ledger.free == 1


async def test_what_was_measured_decides() -> None:
    pool = Pool(Slots(1, 4000))
    long = Demand("long", unread=2000, prompt=2000, output=100, first_token_within=1.0)
    short = Demand("short", unread=20, prompt=2000, output=100, first_token_within=1.0)
    assert pool.admission.decide(long).verdict is Verdict.ADMIT, "nothing is known yet"
    pool.rates.read(100, 0.2)
    pool.rates.moved(0.05)
    decision = pool.admission.decide(long, elsewhere=True)
    assert decision.verdict is Verdict.REFUSE, "nowhere is it read sooner"
    assert decision.predicted_first_token == pytest.approx(4.05)
    assert pool.admission.decide(short).verdict is Verdict.ADMIT
    await pool.begin(demand("a"))
    assert pool.admission.decide(short).verdict is Verdict.QUEUE
    pool.rates.held(3.0)
    decision = pool.admission.decide(short)
    assert decision.verdict is Verdict.REFUSE
    assert decision.predicted_first_token == pytest.approx(3.09)
    assert pool.admission.decide(short, elsewhere=True).verdict is Verdict.ELSEWHERE
    await pool.over()


async def test_who_would_wait_too_long_does_not_wait() -> None:
    pool = Pool(Slots(1, 1000))
    await pool.begin(demand("a"))
    pool.rates.held(WAIT + 1)
    await pool.begin(demand("b"))
    with pytest.raises(AdmissionRefusedError, match=r"no room before 6\.0 s"):
        await pool.turns["b"]
    await pool.over()


Step = tuple[str, int, int]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "batch", "end", "cancel", "time", "lose", "end and cancel"]),
        st.integers(0, 9),
        st.integers(1, 400),
    ),
    max_size=40,
)


@given(STEPS, st.sampled_from([Slots(2, 300), Blocks(8, 50)]))
def test_nothing_is_over_committed_and_nothing_leaks(steps: list[Step], capacity: Capacity) -> None:
    asyncio.run(_interleaved(steps, capacity))


async def _interleaved(steps: list[Step], capacity: Capacity) -> None:
    pool = Pool(capacity)
    for number, (what, which, size) in enumerate(steps):
        name = next((each for each in list(pool.turns)[which:]), None)
        await _act(pool, what, name, f"turn-{number}", size)
        assert 0 <= pool.ledger.free <= capacity.total
        assert pool.admission.waiting <= QUEUE
    await pool.over()
    assert pool.ledger.free == capacity.total
    assert (pool.ledger.held, pool.admission.waiting, pool.inside) == (0, 0, [])


async def _act(pool: Pool, what: str, name: str | None, new: str, size: int) -> None:
    if what in ("begin", "batch"):
        priority = Priority.LIVE if what == "begin" else Priority.BACKGROUND
        await pool.begin(demand(new, size + 20, priority))
    elif what == "time":
        await pool.clock.advance(size / 100)
        await settle()
    elif what == "lose":
        pool.lose()
        await settle()
    elif name is not None:
        acts: dict[str, Callable[[], object]] = {
            "end": pool.finish[name].set,
            "cancel": pool.turns[name].cancel,
            "end and cancel": lambda: (pool.finish[name].set(), pool.turns[name].cancel()),
        }
        with suppress(asyncio.InvalidStateError):
            acts[what]()
        await settle()
