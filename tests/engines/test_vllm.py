"""Two real vLLM engines joined by NIXL on this machine's processor: `make test-engines`."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from pipeline.clock import MonotonicClock
from pipeline.errors import LanguageModelError
from pipeline.events import Message, Prompt, PromptSection, Role, Usage
from pipeline.llm.client import LlmClient, Timeouts
from pipeline.llm.contract_check import mismatches
from pipeline.llm.dialects.vllm_nixl import VllmNixl
from pipeline.llm.pool.admission import Admission
from pipeline.llm.pool.evidence import EvidenceLine
from pipeline.llm.pool.governed import Caller, DecodePool, GovernedSplit, Terms
from pipeline.llm.pool.ledger import Ledger
from pipeline.llm.pool.rates import Rates
from pipeline.llm.pool.routing import Routing
from pipeline.llm.route import Sampling
from services.config import contracts
from tests.engines.vllm_server import MODEL, VllmServer, pair

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

CONTRACT = contracts.load(contracts.VLLM_NIXL)

BLOCK = 32

GREEDY = Sampling(temperature=0.0, repeat_penalty=None)


class Vllm:
    """Both engines, and conversations through them."""

    def __init__(self, prefill: VllmServer, decode: VllmServer, http: httpx.AsyncClient) -> None:
        self.prefill, self.decode, self.http = prefill, decode, http
        self.clock = MonotonicClock()
        self.lines: list[EvidenceLine] = []

    async def open(self) -> None:
        capacity = await self.decode.engine.capacity(self.http)
        self.ledger, rates = Ledger(capacity), Rates()
        self.pool = DecodePool(
            Routing(CONTRACT, self.clock, alone=True),
            Admission(self.ledger, rates, self.clock, queue=8, wait=10.0),
            rates,
            self.lines.append,
        )
        self.nixl = VllmNixl(
            self.prefill.engine.endpoint,
            self.decode.engine.endpoint,
            self.http,
            self.clock,
            model=MODEL,
            sampling=GREEDY,
            tenant="acme",
        )

    def split(self) -> GovernedSplit:  # type: ignore[type-arg]
        terms = Terms(CONTRACT.name, alone=True)
        return GovernedSplit(self.nixl, self.pool, self.clock, caller=Caller("Vis", "acme", "en"), terms=terms)

    def client(self, *, split: bool) -> LlmClient:
        way = self.split() if split else None
        return LlmClient(self.nixl.by_prefill, self.http, self.clock, Timeouts(first_token=60.0), split=way)

    async def fetched(self) -> float:
        """Tokens that the decode engine had from the other, of all turns so far."""
        text = (await self.http.get(self.decode.engine.endpoint.at("/metrics"))).text
        found = re.findall(r'^vllm:prompt_tokens_by_source_total\{.*external_kv_transfer.*\} (\S+)', text, re.M)
        return sum(map(float, found))

    async def held(self) -> float:
        """Share of the prefill engine's cache that is in use."""
        text = (await self.http.get(self.prefill.engine.endpoint.at("/metrics"))).text
        return max(map(float, re.findall(r"^vllm:kv_cache_usage_perc\{.*\} (\S+)", text, re.M)), default=0.0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vllm(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Vllm]:
    async with pair(tmp_path_factory.mktemp("vllm")) as engines, httpx.AsyncClient(timeout=60) as http:
        opened = Vllm(*engines, http)
        await opened.open()
        # The first hand-off between two engines takes seconds for their introduction.
        await answer(opened.client(split=True), prompt(60))
        yield opened


def prompt(words: int, most: int = 16) -> Prompt:
    told = "The harbour is quiet and the gulls sleep on the old crane. " * (words // 12)
    messages = [Message(Role.SYSTEM, "You answer briefly."), Message(Role.USER, f"{told}What sleeps there?")]
    return Prompt(messages, [PromptSection("turn", "d", words)], f"digest {words}", most)


async def answer(client: LlmClient, asked: Prompt) -> tuple[str, Usage]:
    text, usage = "", Usage()
    async with aclosing(client.stream(asked)) as deltas:
        async for delta in deltas:
            text, usage = text + delta.text, delta.usage or usage
    return text, usage


async def test_what_the_engines_tell(vllm: Vllm) -> None:
    told = [await each.engine.attestation(vllm.http) for each in (vllm.prefill, vllm.decode)]
    assert mismatches(CONTRACT, told) == []
    assert told[0].release.kv.block == BLOCK
    assert str(told[0].release.model.runtime).startswith("vllm 0.")
    assert vllm.ledger.capacity.total > 100
    other = replace(told[1].release.model, precision="bfloat16")
    unlike = replace(told[1], release=replace(told[1].release, model=other))
    assert [each.field for each in mismatches(CONTRACT, [told[0], unlike])] == ["model.precision"]


@pytest.mark.parametrize("words", [60, 240, 900])
async def test_the_text_is_the_same_and_the_state_was_fetched(vllm: Vllm, words: int) -> None:
    before = await vllm.fetched()
    text, usage = await answer(vllm.client(split=True), prompt(words))
    alone, _ = await answer(vllm.client(split=False), prompt(words))
    assert text == alone
    assert (usage.pattern, usage.fallback_from) == ("split", None)
    assert usage.prompt_tokens is not None
    assert usage.cached_tokens is not None
    assert usage.cached_tokens >= usage.prompt_tokens - 1
    assert await vllm.fetched() - before >= usage.prompt_tokens - BLOCK
    assert vllm.lines[-1].fallback is None


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2, 0.5, 1.0])
async def test_a_turn_given_up_at_any_time_leaves_nothing(vllm: Vllm, delay: float) -> None:
    turn = asyncio.create_task(answer(vllm.client(split=True), prompt(300, 60)))
    await asyncio.sleep(delay)  # the moment of the cancel is what is tried
    turn.cancel()
    await asyncio.wait([turn])
    assert vllm.ledger.held == 0
    await nothing_is_held(vllm)
    text, usage = await answer(vllm.client(split=True), prompt(120))
    assert text
    assert usage.fallback_from is None


async def test_what_was_read_for_a_turn_given_up_between_the_legs_is_let_go(vllm: Vllm) -> None:
    async with vllm.split().handed_over(prompt(300)):
        assert await vllm.held() > 0
    await nothing_is_held(vllm)


async def test_a_stale_hand_off_is_found_out_before_anything_is_said(vllm: Vllm) -> None:
    """What was fetched once is gone; asked for again the decode engine fails, and the turn goes elsewhere."""
    split = vllm.split()
    async with split.handed_over(prompt(200)) as landing:
        body = landing.route.dialect.request(prompt(200), landing.route, so_far="", most=1)
        handed = body["kv_transfer_params"]
        body = {**body, "stream": False}
        del body["stream_options"]
        await vllm.http.post(landing.route.endpoint.at("/v1/chat/completions"), json=body)
        stale = {**body, "kv_transfer_params": {**handed, "remote_engine_id": "another"}}
        refused = await vllm.http.post(landing.route.endpoint.at("/v1/chat/completions"), json=stale)
        assert refused.status_code >= 400


async def test_when_the_prefill_engine_dies_between_the_legs_the_other_reads_for_itself(vllm: Vllm) -> None:
    split, text = vllm.split(), ""
    client = LlmClient(vllm.nixl.by_prefill, vllm.http, vllm.clock, Timeouts(first_token=90.0), split=split)
    async with split.handed_over(prompt(400)) as landing:
        vllm.prefill.kill()
        await vllm.prefill.process.wait()
        async with aclosing(client._landed(prompt(400), landing, split)) as deltas:
            async for delta in deltas:
                text += delta.text
    assert text
    assert vllm.lines[-1].way in ("decode_alone", "split"), "it may have fetched before it noticed"
    with pytest.raises(LanguageModelError):
        await vllm.prefill.engine.attestation(vllm.http)


async def nothing_is_held(vllm: Vllm) -> None:
    """Within the lease of 30 s at the latest."""
    async with asyncio.timeout(40):
        while await vllm.held() > 0:
            await asyncio.sleep(0.5)
