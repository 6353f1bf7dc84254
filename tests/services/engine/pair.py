"""A prefill and a decode worker, real ones, and conversations that go through them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import httpx

from pipeline.clock import MonotonicClock
from pipeline.events import Message, Prompt, Role, Usage
from pipeline.llm.client import LlmClient, Timeouts
from pipeline.llm.contract import Contract
from pipeline.llm.dialects.llama_cpp import LlamaCpp
from pipeline.llm.dialects.llama_cpp_split import Limits, LlamaCppSplit, SlotPlace, Worker
from pipeline.llm.pool.admission import Admission
from pipeline.llm.pool.evidence import EvidenceLine
from pipeline.llm.pool.governed import Caller, DecodePool, GovernedSplit, Terms
from pipeline.llm.pool.ledger import Ledger, Slots
from pipeline.llm.pool.rates import Rates
from pipeline.llm.pool.routing import Routing
from pipeline.llm.route import Endpoint, Route, Sampling
from services.config import contracts
from services.engine.messages import Role as WorkerRole
from services.engine.model_file import shipped_model
from services.engine.supervisor import EngineSettings, EngineState, EngineSupervisor

GREEDY = Sampling(temperature=0.0, repeat_penalty=None)

LEASE = 3.0

SLOTS, CONTEXT = 2, 2048

CONTRACT = contracts.load()

CALLER = Caller("Vis", "acme", "en")


class Governed:
    """What the conversations of one test share, and what was noted of their turns."""

    def __init__(self, contract: Contract = CONTRACT, *, alone: bool = True) -> None:
        self.clock = clock = MonotonicClock()
        self.terms = Terms(contract.name, alone=alone)
        rates = Rates()
        self.ledger = Ledger(Slots(SLOTS, CONTEXT))
        self.lines: list[EvidenceLine] = []
        self.pool = DecodePool(
            Routing(contract, clock, alone=alone),
            Admission(self.ledger, rates, clock, queue=8, wait=5.0),
            rates,
            self.lines.append,
        )

    def split(self, pair: "Pair", slot: int) -> GovernedSplit[SlotPlace]:
        return GovernedSplit(pair.engine(slot), self.pool, self.clock, caller=CALLER, terms=self.terms)


@dataclass
class Pair:
    prefill: EngineSupervisor
    decode: EngineSupervisor
    http: httpx.AsyncClient
    clock: MonotonicClock
    states: Mapping[WorkerRole, asyncio.Queue[EngineState]]
    """Of each worker, from its first READY on."""

    def worker(self, role: WorkerRole) -> EngineSupervisor:
        return self.prefill if role is WorkerRole.PREFILL else self.decode

    def client(self, *, split: bool, slot: int = 0, governed: Governed | None = None) -> LlmClient:
        def at(endpoint: Endpoint, slot: int) -> Route:
            return Route("llama_cpp", endpoint, LlamaCpp(), slot=slot, sampling=GREEDY)

        split_ = (governed or Governed()).split(self, slot) if split else None
        route = partial(self._route, at, slot)
        # A prompt of 1,500 tokens takes this machine's neighbours' time too.
        patient = Timeouts(first_token=120.0)
        return LlmClient(route, self.http, self.clock, patient, split=split_)

    def engine(self, slot: int) -> LlamaCppSplit:
        def at(endpoint: Endpoint, slot: int) -> Route:
            return Route("llama_cpp", endpoint, LlamaCpp(), slot=slot, sampling=GREEDY)

        return LlamaCppSplit(
            lambda: worker(self.prefill),
            lambda: worker(self.decode),
            self.http,
            self.clock,
            at,
            slot=slot,
            tenant=CALLER.tenant,
            limits=Limits(LEASE, transfer=5.0),
        )

    def _route(self, at: Callable[[Endpoint, int], Route], slot: int) -> Route:
        return at(self.prefill.endpoint(), slot)

    async def places(self) -> tuple[int, int]:
        """Taken and reaped, of the decode worker."""
        gate = self.decode.gate()
        answer = await self.http.get(gate.at("/places"), headers=gate.headers)
        return answer.json()["held"], answer.json()["reaped"]

    async def reads(self) -> bool:
        """Whether the prefill worker is at work."""
        engine = self.prefill.endpoint()
        answer = await self.http.get(engine.at("/slots"), headers=engine.headers)
        return bool(answer.json()[0]["is_processing"])


def worker(supervisor: EngineSupervisor) -> Worker:
    return Worker(supervisor.endpoint(), supervisor.gate())


def kill(supervisor: EngineSupervisor) -> None:
    assert supervisor.pid is not None
    os.kill(supervisor.pid, signal.SIGKILL)


def prompt(text: str, most: int = 24) -> Prompt:
    return Prompt([Message(Role.SYSTEM, "You answer briefly."), Message(Role.USER, text)], [], "", most)


async def answer(client: LlmClient, asked: Prompt) -> tuple[str, Usage]:
    text, usage = "", Usage()
    async with aclosing(client.stream(asked)) as deltas:
        async for delta in deltas:
            text += delta.text
            usage = delta.usage or usage
    return text, usage


@asynccontextmanager
async def open_pair() -> AsyncIterator[Pair]:
    clock = MonotonicClock()
    settings = EngineSettings(shipped_model(), slots=SLOTS, context=CONTEXT, lease=LEASE)
    states: dict[WorkerRole, asyncio.Queue[EngineState]] = {}
    async with AsyncExitStack() as scope:
        workers = []
        for role in (WorkerRole.PREFILL, WorkerRole.DECODE):
            states[role] = asyncio.Queue()
            each = replace(settings, role=role, name=f"{role}-1")
            supervisor = EngineSupervisor(each, clock, on_change=states[role].put_nowait)
            workers.append(await scope.enter_async_context(supervisor))
            assert await states[role].get() is EngineState.READY
        http = await scope.enter_async_context(httpx.AsyncClient(timeout=120, trust_env=False))
        yield Pair(*workers, http, clock, states)
