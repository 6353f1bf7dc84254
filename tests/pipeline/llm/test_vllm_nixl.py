"""vLLM's NIXL split against a fake that speaks its protocol and misbehaves as it can."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest

from pipeline.clock import VirtualClock
from pipeline.errors import LanguageModelError
from pipeline.events import Message, Prompt, PromptSection, Role, Usage
from pipeline.llm.client import LlmClient
from pipeline.llm.dialects.vllm_nixl import NEEDED, VllmNixl
from pipeline.llm.pool.admission import Admission
from pipeline.llm.pool.evidence import EvidenceLine
from pipeline.llm.pool.governed import Caller, DecodePool, GovernedSplit, Terms
from pipeline.llm.pool.ledger import Blocks, Ledger
from pipeline.llm.pool.rates import Rates
from pipeline.llm.pool.routing import FAILURES, Routing
from pipeline.llm.route import Endpoint, Sampling
from services.config import contracts
from tests.pipeline.llm.fake_vllm import DECODE, PREFILL, REPLY, FakeVllm

TEXT = "How are you today my friend"

PROMPT = Prompt(
    [Message(Role.SYSTEM, "You answer briefly."), Message(Role.USER, TEXT)],
    [PromptSection("turn", "d", 20)],
    "digest",
    40,
)


@dataclass
class Engines:
    fake: FakeVllm
    client: LlmClient
    lines: list[EvidenceLine]
    ledger: Ledger

    async def answer(self) -> tuple[str, Usage]:
        text, usage = "", Usage()
        async with aclosing(self.client.stream(PROMPT)) as deltas:
            async for delta in deltas:
                text, usage = text + delta.text, delta.usage or usage
        return text, usage


@asynccontextmanager
async def engines(*, alone: bool = True, tenant: str = "acme") -> AsyncIterator[Engines]:
    fake, clock, lines, rates = FakeVllm(), VirtualClock(), list[EvidenceLine](), Rates()
    ledger = Ledger(Blocks(100, 32))
    contract = contracts.load()
    async with httpx.AsyncClient(transport=httpx.MockTransport(fake)) as http:
        nixl = VllmNixl(
            Endpoint(PREFILL), Endpoint(DECODE), http, clock, model="m", sampling=Sampling(), tenant=tenant
        )
        pool = DecodePool(
            Routing(contract, clock, alone=alone),
            Admission(ledger, rates, clock, queue=4, wait=5.0),
            rates,
            lines.append,
        )
        terms = Terms(contract.name, alone=alone)
        split = GovernedSplit(nixl, pool, clock, caller=Caller("Vis", tenant, "en"), terms=terms)
        yield Engines(fake, LlmClient(nixl.by_prefill, http, clock, split=split), lines, ledger)


async def test_the_two_legs_of_a_turn() -> None:
    async with engines() as e:
        text, usage = await e.answer()
        assert text == "".join(REPLY)
        (_, first, request), (_, second, same) = e.fake.legs
        assert [phase for phase, _, _ in e.fake.legs] == ["prefill", "decode"]
        assert request == same == e.lines[0].request
        assert (first["stream"], first["max_tokens"], second["max_tokens"]) == (False, 1, 40)
        assert "stream_options" not in first
        assert first["messages"] == second["messages"]
        assert first["cache_salt"] == second["cache_salt"]
        assert second["kv_transfer_params"]["remote_request_id"].startswith(f"chatcmpl-{request}")
        assert e.fake.blocks == {}
        assert (usage.pattern, usage.fallback_from) == ("split", None)
        assert usage.cached_tokens == usage.prompt_tokens - 1 if usage.prompt_tokens else False
        assert (e.lines[0].way, e.lines[0].outcome, e.lines[0].fallback) == ("split", "finished", None)
        assert e.ledger.held == 0


async def test_tenants_have_salts_of_their_own() -> None:
    salts = []
    for tenant in ("acme", "other"):
        async with engines(tenant=tenant) as e:
            await e.answer()
            salts.append(e.fake.legs[0][1]["cache_salt"])
    assert salts[0] != salts[1]


@pytest.mark.parametrize("lacks", NEEDED)
async def test_a_hand_off_that_would_silently_be_none_is_none(lacks: str) -> None:
    async with engines() as e:
        e.fake.lacks = lacks
        text, usage = await e.answer()
        assert text == "".join(REPLY)
        assert (usage.pattern, usage.fallback_from) == ("colocated", "split")
        assert f"its reply lacks {lacks} of kv_transfer_params" in str(e.lines[0].fallback)
        assert "kv_transfer_params" not in e.fake.legs[1][1], "an honest reading of its own"


async def test_an_engine_without_a_connector_is_told_as_such() -> None:
    async with engines(alone=False) as e:
        e.fake.gives_nothing = True
        with pytest.raises(LanguageModelError, match="was it started with NixlConnector"):
            await e.answer()
        assert e.ledger.held == 0


async def test_a_silent_local_prefill_is_told_and_after_some_nothing_is_handed_over() -> None:
    async with engines() as e:
        e.fake.local = True
        for _ in range(FAILURES):
            await e.answer()
        assert {line.fallback for line in e.lines} == {"silent local prefill"}
        e.fake.legs.clear()
        _, usage = await e.answer()
        assert [phase for phase, _, _ in e.fake.legs] == ["prefill"]
        assert (usage.pattern, usage.fallback_from) == ("colocated", "split")
        assert e.lines[-1].why == "transfer has failed lately"


async def test_a_state_that_cannot_be_fetched_is_read_again_before_anything_is_said() -> None:
    async with engines() as e:
        e.fake.load_fails = True
        text, usage = await e.answer()
        assert text == "".join(REPLY), "said once"
        assert (usage.pattern, usage.fallback_from) == ("colocated", "split")
        assert [phase for phase, _, _ in e.fake.legs] == ["prefill", "decode", "prefill"]
        assert {line.prompt_digest for line in e.lines} == {"digest"}


@pytest.mark.parametrize(("dead", "phases"), [("prefill", ["decode"]), ("decode", ["prefill", "prefill"])])
async def test_a_dead_engine_is_gone_around(dead: str, phases: list[str]) -> None:
    async with engines() as e:
        e.fake.dead = {dead}
        text, usage = await e.answer()
        assert text == "".join(REPLY)
        assert usage.fallback_from == "split"
        assert [phase for phase, _, _ in e.fake.legs] == phases


async def test_whoever_is_left_answers_when_the_other_dies_between_the_legs() -> None:
    for dead in ("prefill", "decode"):
        async with engines() as e:
            split = e.client._split
            assert split is not None
            text = ""
            async with split.handed_over(PROMPT) as landing:
                e.fake.dead = {dead}
                e.fake.load_fails = True
                async with aclosing(e.client._landed(PROMPT, landing, split)) as deltas:
                    async for delta in deltas:
                        text += delta.text
            assert text == "".join(REPLY)
            assert e.lines[0].way == f"{'decode' if dead == 'prefill' else 'prefill'}_alone"


async def test_an_error_inside_200_is_an_error() -> None:
    async with engines(alone=False) as e:
        e.fake.error = "EngineCore encountered an issue"
        with pytest.raises(LanguageModelError, match="HTTP 200: EngineCore encountered an issue"):
            await e.answer()


async def test_a_fault_of_ours_is_no_finished_turn() -> None:
    async with engines() as e:
        split = e.client._split
        assert split is not None
        with pytest.raises(ZeroDivisionError):
            async with split.handed_over(PROMPT):
                raise ZeroDivisionError
        assert (e.lines[0].outcome, e.lines[0].reached) == ("broken", "answer")


async def test_a_turn_given_up_while_it_is_read_leaves_nothing() -> None:
    async with engines() as e:
        e.fake.hold = asyncio.Event()
        turn = asyncio.create_task(e.answer())
        await e.fake.asked.wait()
        turn.cancel()
        await asyncio.wait([turn])
        assert (e.ledger.held, e.fake.blocks) == (0, {})
        assert (e.lines[0].outcome, e.lines[0].reached) == ("cancelled", "prefill")


async def test_what_was_read_for_a_turn_given_up_between_the_legs_is_let_go() -> None:
    async with engines() as e:
        split = e.client._split
        assert split is not None
        async with split.handed_over(PROMPT):
            assert len(e.fake.blocks) == 1
        assert e.fake.blocks == {}
        phase, body, _ = e.fake.legs[-1]
        assert (phase, body["max_tokens"], body["stream"]) == ("decode", 1, False)
