"""Two of our llama.cpp workers as one engine: what one has read goes to a slot of the other, which answers.

Against a worker's gate (services/engine/kv_gate.py) and llama.cpp's own server beside it:

    decode   POST /places {request, tenant}                      → {ticket, slot}
    prefill  POST /apply-template, POST /completion n_predict 0  the prompt, in the conversation's slot
    prefill  POST /handoffs {request, tenant, slot, ticket, to}  → {bytes, tokens, …}
    decode   POST /v1/chat/completions, id_slot                  the reply; one token of the prompt is read
    decode   DELETE /places/{request}                            whatever became of it

Which way a turn goes is decided first, and room in the decode pool reserved (pipeline/llm/pool): the ledger
makes it wait in order; the place, which the worker itself reserves, is what counts. Both are given back
exactly once, when the reply is over or was given up. llama.cpp evaluates a prompt's last token anew, so the
first token of a reply is the decoder's.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx

from pipeline.clock import Clock
from pipeline.errors import AdmissionRefusedError, LanguageModelError
from pipeline.events import Prompt
from pipeline.llm.contract import TurnClass
from pipeline.llm.dialects.llama_cpp import render
from pipeline.llm.pool.admission import Admission, Demand, Verdict
from pipeline.llm.pool.evidence import CANCELLED, EvidenceLine, Note, Reached
from pipeline.llm.pool.rates import Rates
from pipeline.llm.pool.routing import Choice, Part, Routing, Way
from pipeline.llm.route import Endpoint, Landing, Pattern, Route

_log = logging.getLogger(__name__)

_FREE = 2.0
"""Seconds for giving a place back; the lease does it else."""

_BEATS = 3
"""Heartbeats in a lease."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker, as it is now: addresses change when it is restarted."""

    engine: Endpoint
    gate: Endpoint


@dataclass(frozen=True, slots=True)
class SplitTerms:
    """What the route's contract says of each turn. Seconds."""

    contract: str
    """Its name."""
    lease: float
    """For which the decode worker keeps a place for a request nobody asks for."""
    transfer_timeout: float
    alone: bool
    """Where one worker fails before the first token, the other answers alone."""
    first_token: float = 20.0
    """Within which a reply has to begin."""


@dataclass(frozen=True, slots=True)
class DecodePool:
    """What all conversations of a split engine share."""

    routing: Routing
    admission: Admission
    rates: Rates
    note: Note


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose turns these are, as a contract tells them apart."""

    avatar: str
    tenant: str
    language: str


class _Place(NamedTuple):
    decode: Worker
    ticket: str
    slot: int


class LlamaCppSplit:
    """A `Split` of one conversation: `slot` is the prefill worker's that holds its prefix."""

    def __init__(
        self,
        prefill: Callable[[], Worker],
        decode: Callable[[], Worker],
        pool: DecodePool,
        http: httpx.AsyncClient,
        clock: Clock,
        route: Callable[[Endpoint, int], Route],
        *,
        slot: int,
        caller: Caller,
        terms: SplitTerms,
    ) -> None:
        """Both raise LanguageModelError while their worker does not serve. `route`: to an engine's slot."""
        self._prefill = prefill
        self._decode = decode
        self._pool = pool
        self._health = pool.routing.health
        self._http = http
        self._clock = clock
        self._route = route
        self._slot = slot
        self._caller = caller
        self._terms = terms
        self._read_before = 0
        """Tokens of the last prompt that the slot has read: the next one mostly begins like it."""

    @asynccontextmanager
    async def handed_over(self, prompt: Prompt) -> AsyncIterator[Landing]:
        """The prompt read and its state where the reply is written, for as long as the context lasts.

        Where one of the two workers fails before there is anything of a reply, the other does it alone: both
        are of one release, and the prompt is the same. Raises AdmissionRefusedError when it cannot be
        answered in time, LanguageModelError when no worker may answer.
        """
        line = EvidenceLine(
            request=secrets.token_urlsafe(16),
            tenant=self._caller.tenant,
            contract=self._terms.contract,
            prompt_digest=prompt.digest,
            prompt_tokens=prompt.tokens,
            unread_tokens=max(1, prompt.tokens - self._read_before),
        )
        try:
            async with AsyncExitStack() as scope:
                landing = await self._landing(prompt, line, scope)
                line.reached = Reached.ANSWER
                self._read_before = prompt.tokens
                yield landing
        except (asyncio.CancelledError, GeneratorExit):
            line.outcome = CANCELLED
            raise
        except LanguageModelError as error:
            line.outcome = error.code
            raise
        finally:
            self._pool.note(line)

    async def _landing(self, prompt: Prompt, line: EvidenceLine, scope: AsyncExitStack) -> Landing:
        choice = self._chosen(prompt, line)
        if choice.way in (Way.SPLIT, Way.DECODE_ALONE):
            choice = await self._admitted(prompt, line, choice, scope)
        line.way, line.why = choice.way, choice.why
        if choice.way is Way.NOWHERE:
            raise AdmissionRefusedError(choice.why)
        if choice.way is Way.PREFILL_ALONE:
            return self._by_prefill(line, fallback=choice.fallback)
        try:
            line.reached = Reached.PLACE
            place = await scope.enter_async_context(self._place(line.request))
        except LanguageModelError as error:
            if isinstance(error, AdmissionRefusedError) or not self._terms.alone:
                raise
            line.way, line.fallback = Way.PREFILL_ALONE, str(error)
            _log.warning("the prefill worker answers alone: %s", error)
            return self._by_prefill(line, fallback=True)
        there = self._route(place.decode.engine, place.slot)
        if choice.way is Way.DECODE_ALONE:
            return _alone(there, line, fallback=True)
        try:
            return await self._moved(prompt, there, place, line)
        except LanguageModelError as error:
            if not self._terms.alone:
                raise
            line.way, line.fallback = Way.DECODE_ALONE, str(error)
            _log.warning("the decode worker answers alone: %s", error)
            return _alone(there, line, fallback=True)

    def _chosen(self, prompt: Prompt, line: EvidenceLine) -> Choice:
        """Where a turn goes if there is room."""
        routing, caller = self._pool.routing, self._caller
        try:
            decode = self._decode()
        except LanguageModelError as error:
            return routing.without(Way.PREFILL_ALONE, str(error))
        self._pool.admission.serves(decode.gate.url)
        output = prompt.max_output_tokens
        return routing.choose(
            TurnClass(caller.avatar, caller.tenant, caller.language, line.unread_tokens, output)
        )

    async def _admitted(
        self, prompt: Prompt, line: EvidenceLine, choice: Choice, scope: AsyncExitStack
    ) -> Choice:
        """The same choice, with room in the decode pool, or another. Raises AdmissionRefusedError."""
        demand = Demand(
            line.request,
            unread=line.unread_tokens,
            prompt=prompt.tokens,
            output=prompt.max_output_tokens,
            first_token_within=self._terms.first_token,
        )
        decision = self._pool.admission.decide(demand, elsewhere=self._terms.alone)
        line.reached, line.admission = Reached.QUEUE, f"{decision.verdict}: {decision.why}"
        if (predicted := decision.predicted_first_token) is not None:
            line.predicted_first_token_ms = _ms(predicted)
        if decision.verdict is Verdict.ELSEWHERE:
            return Choice(Way.PREFILL_ALONE, decision.why, fallback=True)
        begun = self._clock.now()
        await scope.enter_async_context(self._pool.admission.admitted(demand))
        line.queue_ms = _ms(self._clock.now() - begun)
        return choice

    def _by_prefill(self, line: EvidenceLine, *, fallback: bool) -> Landing:
        return _alone(self._route(self._prefill().engine, self._slot), line, fallback=fallback)

    async def _moved(self, prompt: Prompt, there: Route, place: _Place, line: EvidenceLine) -> Landing:
        prefill = self._prefill()
        line.reached = Reached.PREFILL
        with self._counted(Part.PREFILL):
            await self._read(prefill.engine, prompt, line)
        line.reached, begun = Reached.TRANSFER, self._clock.now()
        with self._counted(Part.TRANSFER):
            async with asyncio.timeout(self._terms.transfer_timeout):
                moved = await self._post(
                    prefill.gate,
                    "/handoffs",
                    request=line.request,
                    tenant=self._caller.tenant,
                    slot=self._slot,
                    ticket=place.ticket,
                    to=place.decode.gate.url,
                )
        seconds = self._clock.now() - begun
        self._pool.rates.moved(seconds)
        line.release, line.kv_digest = moved["release"], moved["digest"]
        line.kv_tokens, line.kv_bytes = moved["tokens"], moved["bytes"]
        line.save_ms, line.send_ms, line.restore_ms = (
            round(moved[what], 1) for what in ("save_ms", "send_ms", "restore_ms")
        )
        return Landing(there, moved["tokens"], moved["bytes"], begun, seconds, _queued(line))

    @contextlib.contextmanager
    def _counted(self, part: Part) -> Iterator[None]:
        """How one part of the way goes is what the next turns are sent by. Raises LanguageModelError."""
        try:
            yield
        except (httpx.HTTPError, TimeoutError) as error:
            self._health[part].failed()
            raise LanguageModelError(f"{part} broke: {error!r}") from error
        except LanguageModelError as error:
            if not isinstance(error, AdmissionRefusedError):  # it is well, and full
                self._health[part].failed()
            raise
        self._health[part].succeeded()

    @asynccontextmanager
    async def _place(self, request: str) -> AsyncIterator[_Place]:
        """A slot of the decode worker. Raises AdmissionRefusedError, LanguageModelError."""
        decode = self._decode()
        beating: asyncio.Task[None] | None = None
        try:
            with self._counted(Part.DECODE):
                place = await self._post(decode.gate, "/places", request=request, tenant=self._caller.tenant)
            beating = asyncio.create_task(self._beat(decode.gate, request))
            yield _Place(decode, place["ticket"], place["slot"])
        finally:
            if beating is not None:
                beating.cancel()
                await asyncio.wait({beating})
            # Also when the reservation was cancelled under way: it may have arrived.
            await asyncio.shield(self._give_back(decode.gate, request))

    async def _beat(self, gate: Endpoint, request: str) -> None:
        with contextlib.suppress(httpx.HTTPError):  # its worker is gone; the reply finds out by itself
            while True:
                await self._clock.sleep_until(self._clock.now() + self._terms.lease / _BEATS)
                answer = await self._http.post(gate.at(f"/places/{request}/heartbeat"), headers=gate.headers)
                if answer.status_code == 410:
                    return

    async def _give_back(self, gate: Endpoint, request: str) -> None:
        # Where its worker is gone, or busy, the lease runs out.
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(_FREE):
                await self._http.delete(gate.at(f"/places/{request}"), headers=gate.headers)

    async def _read(self, engine: Endpoint, prompt: Prompt, line: EvidenceLine) -> None:
        text = await render(self._http, engine, prompt.messages)
        body = {"prompt": text, "n_predict": 0, "cache_prompt": True, "id_slot": self._slot}
        answer = await self._http.post(engine.at("/completion"), json=body, headers=engine.headers)
        answer.raise_for_status()
        timings = answer.json()["timings"]
        line.read_tokens, line.read_ms = timings["prompt_n"], round(timings["prompt_ms"], 1)
        self._pool.rates.read(timings["prompt_n"], timings["prompt_ms"] / 1000)

    async def _post(self, endpoint: Endpoint, path: str, **body: object) -> dict[str, Any]:
        answer = await self._http.post(endpoint.at(path), json=body, headers=endpoint.headers)
        if answer.status_code == 503:
            raise AdmissionRefusedError(str(answer.json()["error"]))
        if answer.status_code >= 400:
            raise LanguageModelError(f"{endpoint.url}{path}: {answer.text[:200]}")
        return dict(answer.json())


def _alone(route: Route, line: EvidenceLine, *, fallback: bool) -> Landing:
    """One worker for both; `fallback`: not because the turn is one of those."""
    failed = Pattern.SPLIT if fallback else None
    return Landing(route, 0, 0, None, 0.0, _queued(line), Pattern.COLOCATED, failed)


def _queued(line: EvidenceLine) -> float | None:
    return None if line.queue_ms is None else line.queue_ms / 1000


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
