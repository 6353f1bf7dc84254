"""The language model as the configuration has it: workers of our own, one or two, or a server of others."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import ConfigError
from pipeline.llm.client import Timeouts
from pipeline.llm.contract import Attestation, Contract, Resumption
from pipeline.llm.contract_check import mismatches
from pipeline.llm.dialects.llama_cpp_split import Caller, DecodePool, SplitTerms, Worker
from pipeline.llm.pool.admission import Admission
from pipeline.llm.pool.evidence import Note
from pipeline.llm.pool.ledger import Ledger, Slots
from pipeline.llm.pool.llm_pool import LlmPool, SplitWorkers
from pipeline.llm.pool.rates import Rates
from pipeline.llm.pool.routing import Routing
from pipeline.llm.route import Endpoint, Pattern, Sampling
from services.config import Config, contracts
from services.engine.messages import Role
from services.engine.model_file import prepare_model, shipped_model
from services.engine.supervisor import EngineSettings, EngineState, EngineSupervisor
from services.split.evidence_log import evidence_log

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Engines:
    """The workers of our own: who reads prompts, and who writes replies where that is another."""

    workers: Sequence[EngineSupervisor] = ()
    contract: Contract | None = None
    """Of the route from one to the other."""

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
            "dialect": "llama_cpp" if self.workers else "openai",
            "contract": self.contract and self.contract.name,
        }

    async def identities(self) -> list[Attestation]:
        """What the workers of a split say they are. Raises LanguageModelError."""
        return [await worker.identity() for worker in self.workers]

    async def check(self) -> None:
        """Raises ConfigError when workers do not keep their contract."""
        if self.contract is None:
            return
        if found := mismatches(self.contract, await self.identities()):
            told = "\n".join(f"{each.field}: {each.what}" for each in found)
            name = self.contract.name
            raise ConfigError(f"the workers do not keep contract {name}; no turn may go there:\n{told}")


async def start(
    config: Config,
    cache: Path,
    clock: Clock,
    progress: Progress,
    scope: AsyncExitStack,
    contract: Contract | None = None,
) -> Engines:
    """Workers that end with `scope`; `contract` None: the packaged one, where they are two.

    Raises ConfigError, EngineError, MissingModelError.
    """
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
    contract = contract or contracts.load()
    settings = replace(settings, lease=contract.failure.lease_s)
    cores = sorted(os.sched_getaffinity(0))
    pair = [
        EngineSupervisor(replace(settings, role=role, name=f"{role}-1", core=core), clock)
        for role, core in ((Role.PREFILL, cores[0]), (Role.DECODE, cores[-1]))
    ]
    return Engines(await asyncio.gather(*map(scope.enter_async_context, pair)), contract)


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
    path = config.llm.embedded.evidence_log or config.server.cache_folder / "split-evidence.jsonl"
    return scope.enter_context(evidence_log(path))


def open_pool(config: Config, clock: Clock, engines: Engines, evidence: Note | None = None) -> LlmPool:
    """What conversations get their access from. `evidence` keeps how each turn of a split went."""
    llm = config.llm
    sampling = Sampling(
        temperature=llm.sampling.temperature,
        top_p=llm.sampling.top_p,
        repeat_penalty=llm.sampling.repeat_penalty,
        seed=llm.sampling.seed,
    )
    timeouts = Timeouts(first_token=llm.first_token_timeout_s, token_gap=llm.token_gap_timeout_s)
    if engines.workers:
        return LlmPool(
            engines.workers[0].endpoint,
            clock,
            slots=config.server.max_sessions,
            sampling=sampling,
            timeouts=timeouts,
            split=_split(config, clock, engines, evidence),
        )
    openai = llm.openai
    assert openai.base_url is not None  # the settings see to both when kind is openai
    assert openai.model is not None
    endpoint = Endpoint(openai.base_url, openai.api_key.get_secret_value() if openai.api_key else None)
    return LlmPool(lambda: endpoint, clock, model=openai.model, sampling=sampling, timeouts=timeouts)


def _split(config: Config, clock: Clock, engines: Engines, evidence: Note | None) -> SplitWorkers | None:
    if engines.contract is None:
        return None
    prefill, decode = engines.workers
    contract = engines.contract
    assert contract.transfer is not None  # a contract with two pools has one
    alone = contract.fallback.before_first_token is Resumption.RESEND
    rates = Rates()
    admission = Admission(
        Ledger(Slots(config.server.max_sessions, config.llm.context_tokens)),
        rates,
        clock,
        queue=contract.admission.queue,
        wait=contract.admission.wait_s,
    )
    return SplitWorkers(
        lambda: Worker(prefill.endpoint(), prefill.gate()),
        lambda: Worker(decode.endpoint(), decode.gate()),
        pool=DecodePool(
            Routing(contract, clock, alone=alone),
            admission,
            rates,
            evidence or (lambda line: None),
        ),
        caller=Caller(config.agent.name, config.llm.evidence.tenant, config.asr.language),
        terms=SplitTerms(
            contract.name,
            lease=contract.failure.lease_s,
            transfer_timeout=contract.transfer.timeout_s,
            alone=alone,
            first_token=config.llm.first_token_timeout_s,
        ),
    )
