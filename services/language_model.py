"""The language model as the configuration has it: workers of our own, one or two, or servers of others."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from pipeline.clock import Clock
from pipeline.errors import ConfigError
from pipeline.llm.client import Timeouts
from pipeline.llm.contract import Attestation, Contract, Phase, Resumption
from pipeline.llm.contract_check import mismatches
from pipeline.llm.dialects.llama_cpp import LlamaCpp
from pipeline.llm.dialects.llama_cpp_split import Limits, LlamaCppSplit, Worker
from pipeline.llm.dialects.openai import OpenAi
from pipeline.llm.dialects.vllm_nixl import SaltedOpenAi, VllmNixl
from pipeline.llm.pool.admission import Admission
from pipeline.llm.pool.evidence import Note
from pipeline.llm.pool.governed import Caller, DecodePool, GovernedSplit, SplitEngine, Terms
from pipeline.llm.pool.ledger import Capacity, Ledger, Slots
from pipeline.llm.pool.llm_pool import LlmPool, OpenSplit
from pipeline.llm.pool.rates import Rates
from pipeline.llm.pool.routing import Routing
from pipeline.llm.route import Endpoint, Pattern, Route, Sampling, Split
from services.config import Config, contracts
from services.engine.messages import Role
from services.engine.model_file import prepare_model, shipped_model
from services.engine.supervisor import EngineSettings, EngineState, EngineSupervisor
from services.split.evidence_log import evidence_log
from services.split.vllm_engines import Declared, VllmEngine

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Engines:
    """Who reads prompts, and who writes replies where that is another."""

    workers: Sequence[EngineSupervisor] = ()
    """Of our own."""
    others: Sequence[VllmEngine] = ()
    """Somebody else's, that are split."""
    contract: Contract | None = None
    """Of the route from one to the other."""
    capacity: Capacity | None = None
    """Of who writes replies, where that is another."""

    @property
    def trouble(self) -> str | None:
        """Why no turn can be taken now, in plain words."""
        for worker in self.workers:
            if worker.state is not EngineState.READY:
                return f"The language model's engine is {worker.state}."
        return None

    @property
    def route(self) -> Mapping[str, Any]:
        """How turns reach the language model, as they record it."""
        return {
            "pattern": (Pattern.COLOCATED if self.contract is None else Pattern.SPLIT).value,
            "dialect": self._dialect.name,
            "contract": self.contract and self.contract.name,
        }

    @property
    def _dialect(self) -> type[OpenAi]:
        if self.workers:
            return LlamaCpp
        return SaltedOpenAi if self.others else OpenAi

    async def identities(self) -> list[Attestation]:
        """What the engines of a split say they are. Raises LanguageModelError."""
        if not self.others:
            return [await worker.identity() for worker in self.workers]
        async with httpx.AsyncClient() as http:
            return [await engine.attestation(http) for engine in self.others]

    async def check(self) -> None:
        """Raises ConfigError when engines do not keep their contract, LanguageModelError if one is down."""
        if self.contract is None:
            return
        if found := mismatches(self.contract, await self.identities()):
            told = "\n".join(f"{each.field}: {each.what}" for each in found)
            name = self.contract.name
            raise ConfigError(f"the engines do not keep contract {name}; no turn may go there:\n{told}")


async def start(
    config: Config,
    cache: Path,
    clock: Clock,
    progress: Progress,
    scope: AsyncExitStack,
    contract: Contract | None = None,
) -> Engines:
    """Workers that end with `scope`; `contract` None: the packaged one, where they are two.

    Raises ConfigError, EngineError, MissingModelError, LanguageModelError.
    """
    if config.llm.kind == "vllm_nixl":
        return await _vllm(config, progress, contract)
    if config.llm.kind != "embedded":
        return Engines()
    embedded = config.llm.embedded
    model = embedded.model if embedded.requantise or embedded.model else shipped_model()
    if model is None:
        model = await _prepared(cache, progress)
    progress("starting the language model's engine")
    settings = EngineSettings(
        model=model,
        slots=config.server.max_sessions,
        context=config.llm.context_tokens,
        threads=embedded.threads,
    )
    if embedded.pattern == "colocated":
        return Engines((await scope.enter_async_context(EngineSupervisor(settings, clock)),))
    contract = contract or contracts.load(contracts.EMBEDDED)
    settings = replace(settings, lease=contract.failure.lease_s)
    cores = sorted(os.sched_getaffinity(0))
    pair = [
        EngineSupervisor(replace(settings, role=role, name=f"{role}-1", core=core), clock)
        for role, core in ((Role.PREFILL, cores[0]), (Role.DECODE, cores[-1]))
    ]
    workers = await asyncio.gather(*map(scope.enter_async_context, pair))
    return Engines(workers, contract=contract, capacity=Slots(settings.slots, settings.context))


async def _vllm(config: Config, progress: Progress, contract: Contract | None) -> Engines:
    vllm_nixl = config.llm.vllm_nixl
    key = vllm_nixl.api_key.get_secret_value() if vllm_nixl.api_key else None

    def engine(phase: Phase, url: str | None, declared: Declared) -> VllmEngine:
        assert url is not None  # the settings see to both
        assert vllm_nixl.model is not None
        return VllmEngine(phase, Endpoint(url, key), vllm_nixl.model, declared)

    engines = [
        engine(
            Phase.PREFILL,
            vllm_nixl.prefill.url,
            Declared(vllm_nixl.prefill.weights, vllm_nixl.prefill.precision),
        ),
        engine(
            Phase.DECODE, vllm_nixl.decode.url, Declared(vllm_nixl.decode.weights, vllm_nixl.decode.precision)
        ),
    ]
    progress("asking the language model's engines what they are")
    async with httpx.AsyncClient() as http:
        capacity = await engines[-1].capacity(http)
    contract = contract or contracts.load(vllm_nixl.contract or contracts.VLLM_NIXL)
    return Engines(others=engines, contract=contract, capacity=capacity)


async def _prepared(cache: Path, progress: Progress) -> Path:
    loop = asyncio.get_running_loop()
    tenths = iter(range(10, 101, 10))
    due = next(tenths)

    def told(fraction: float) -> None:
        nonlocal due
        if fraction * 100 >= due:
            loop.call_soon_threadsafe(progress, f"preparing the language model, once: {due} %")
            due = next(tenths, 1000)

    prepared = await asyncio.to_thread(prepare_model, cache, told)
    if prepared.fallback_reason is not None:
        progress(f"using the packaged language model as it is: {prepared.fallback_reason}")
    return prepared.path


def keep_evidence(config: Config, engines: Engines, scope: AsyncExitStack) -> Note | None:
    """Takes lines of evidence until `scope` ends; None where turns go only one way. Raises ConfigError."""
    if engines.contract is None:
        return None
    path = config.llm.split_log or config.server.cache_folder / "split-evidence.jsonl"
    return scope.enter_context(evidence_log(path))


def open_pool(config: Config, clock: Clock, engines: Engines, evidence: Note | None = None) -> LlmPool:
    """What conversations get their access from. `evidence` keeps how each turn of a split went."""
    llm = config.llm
    timeouts = Timeouts(first_token=llm.first_token_timeout_s, token_gap=llm.token_gap_timeout_s)
    pool = partial(LlmPool, clock=clock, sampling=_sampling(config), timeouts=timeouts)
    if engines.workers:
        split = _llama_cpp_split(config, clock, engines, evidence) if engines.contract else None
        return pool(engines.workers[0].endpoint, slots=config.server.max_sessions, split=split)
    if engines.others:
        prefill = engines.others[0]
        return pool(
            lambda: prefill.endpoint,
            model=prefill.model,
            dialect=SaltedOpenAi(llm.evidence.tenant),
            split=_vllm_nixl(config, clock, engines, evidence),
        )
    openai = llm.openai
    assert openai.base_url is not None  # the settings see to both when kind is openai
    assert openai.model is not None
    endpoint = Endpoint(openai.base_url, openai.api_key.get_secret_value() if openai.api_key else None)
    return pool(lambda: endpoint, model=openai.model)


def _sampling(config: Config) -> Sampling:
    sampling = config.llm.sampling
    return Sampling(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        repeat_penalty=sampling.repeat_penalty,
        seed=sampling.seed,
    )


def _llama_cpp_split(config: Config, clock: Clock, engines: Engines, evidence: Note | None) -> OpenSplit:
    prefill, decode = engines.workers
    contract, sampling = engines.contract, _sampling(config)
    assert contract is not None
    assert contract.transfer is not None  # a contract with two pools has one
    limits = Limits(lease=contract.failure.lease_s, transfer=contract.transfer.timeout_s)
    governed = _governed(config, clock, engines, evidence)

    def route(endpoint: Endpoint, slot: int) -> Route:
        return Route(LlamaCpp.name, endpoint, LlamaCpp(), slot=slot, sampling=sampling)

    def open_split(http: httpx.AsyncClient, slot: int | None) -> Split:
        assert slot is not None
        engine = LlamaCppSplit(
            lambda: Worker(prefill.endpoint(), prefill.gate()),
            lambda: Worker(decode.endpoint(), decode.gate()),
            http,
            clock,
            route,
            slot=slot,
            tenant=config.llm.evidence.tenant,
            limits=limits,
        )
        return governed(engine)

    return open_split


def _vllm_nixl(config: Config, clock: Clock, engines: Engines, evidence: Note | None) -> OpenSplit:
    prefill, decode = engines.others
    governed = _governed(config, clock, engines, evidence)

    def open_split(http: httpx.AsyncClient, slot: int | None) -> Split:
        engine = VllmNixl(
            prefill.endpoint,
            decode.endpoint,
            http,
            clock,
            model=prefill.model,
            sampling=_sampling(config),
            tenant=config.llm.evidence.tenant,
            first_leg=config.llm.first_token_timeout_s,
        )
        return governed(engine)

    return open_split


def _governed(
    config: Config, clock: Clock, engines: Engines, evidence: Note | None
) -> Callable[[SplitEngine[Any]], Split]:
    """Makes a conversation's way through the split, all of which share what is known of its engines."""
    contract = engines.contract
    assert contract is not None
    assert engines.capacity is not None
    alone = contract.fallback.before_first_token is Resumption.RESEND
    rates = Rates()
    admission = Admission(
        Ledger(engines.capacity),
        rates,
        clock,
        queue=contract.admission.queue,
        wait=contract.admission.wait_s,
    )
    pool = DecodePool(
        Routing(contract, clock, alone=alone), admission, rates, evidence or (lambda line: None)
    )
    caller = Caller(config.agent.name, config.llm.evidence.tenant, config.asr.language)
    terms = Terms(contract.name, alone=alone, first_token=config.llm.first_token_timeout_s)
    return lambda engine: GovernedSplit(engine, pool, clock, caller=caller, terms=terms)
