"""Two of our llama.cpp workers as one engine: what one has read goes to a slot of the other, which answers.

Against a worker's gate (services/engine/kv_gate.py) and llama.cpp's own server beside it:

    decode   POST /places {request, tenant}                      → {ticket, slot}
    prefill  POST /apply-template, POST /completion n_predict 0  the prompt, in the conversation's slot
    prefill  POST /handoffs {request, tenant, slot, ticket, to}  → {bytes, tokens, …}
    decode   POST /v1/chat/completions, id_slot                  the reply; one token of the prompt is read
    decode   DELETE /places/{request}                            whatever became of it

The place is given back exactly once, when the reply is over or was given up. llama.cpp evaluates a prompt's
last token anew, so the first token of a reply is the decoder's. Which way a turn goes, and who answers where
one of these fails, is decided in pipeline/llm/pool/governed.py.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from pipeline.clock import Clock
from pipeline.errors import AdmissionRefusedError, LanguageModelError
from pipeline.events import Prompt
from pipeline.llm.dialects.llama_cpp import render
from pipeline.llm.pool.evidence import EvidenceLine
from pipeline.llm.route import Endpoint, Landing, Route

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
class Limits:
    """Seconds."""

    lease: float
    """For which the decode worker keeps a place for a request nobody asks for."""
    transfer: float


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """A slot of the decode worker, and the right to put state into it."""

    route: Route
    ticket: str
    gate: Endpoint


class LlamaCppSplit:
    """A `SplitEngine` for one conversation: `slot` is the prefill worker's that holds its prefix."""

    def __init__(
        self,
        prefill: Callable[[], Worker],
        decode: Callable[[], Worker],
        http: httpx.AsyncClient,
        clock: Clock,
        route: Callable[[Endpoint, int], Route],
        *,
        slot: int,
        tenant: str,
        limits: Limits,
    ) -> None:
        """Both raise LanguageModelError while their worker does not serve. `route`: to an engine's slot."""
        self._prefill = prefill
        self._decode = decode
        self._http = http
        self._clock = clock
        self._route = route
        self._slot = slot
        self._tenant = tenant
        self._limits = limits

    def serving(self) -> str:
        return self._decode().gate.url

    def by_prefill(self) -> Route:
        return self._route(self._prefill().engine, self._slot)

    @asynccontextmanager
    async def place(self, request: str) -> AsyncIterator[SlotPlace]:
        """A slot of the decode worker. Raises AdmissionRefusedError, LanguageModelError."""
        decode = self._decode()
        beating: asyncio.Task[None] | None = None
        try:
            body = {"request": request, "tenant": self._tenant}
            answer = await self._post(decode.gate, "/places", body)
            beating = asyncio.create_task(self._beat(decode.gate, request))
            yield SlotPlace(self._route(decode.engine, answer["slot"]), answer["ticket"], decode.gate)
        finally:
            if beating is not None:
                beating.cancel()
                await asyncio.wait({beating})
            # Also when the reservation was cancelled under way: it may have arrived.
            await asyncio.shield(self._give_back(decode.gate, request))

    async def read(self, prompt: Prompt, place: SlotPlace, line: EvidenceLine) -> None:
        """Raises LanguageModelError."""
        engine = self._prefill().engine
        try:
            text = await render(self._http, engine, prompt.messages)
        except httpx.HTTPError as error:
            raise LanguageModelError(f"{engine.url} did not render a prompt: {error!r}") from error
        body = {"prompt": text, "n_predict": 0, "cache_prompt": True, "id_slot": self._slot}
        timings = (await self._post(engine, "/completion", body))["timings"]
        line.read_tokens, line.read_ms = timings["prompt_n"], round(timings["prompt_ms"], 1)

    async def move(self, prompt: Prompt, place: SlotPlace, line: EvidenceLine) -> Landing:
        """Raises LanguageModelError."""
        begun = self._clock.now()
        body = {
            "request": line.request,
            "tenant": self._tenant,
            "slot": self._slot,
            "ticket": place.ticket,
            "to": place.gate.url,
        }
        try:
            async with asyncio.timeout(self._limits.transfer):
                moved = await self._post(self._prefill().gate, "/handoffs", body)
        except TimeoutError as error:
            limit = f"{self._limits.transfer:g} s"
            raise LanguageModelError(f"the state of {line.request} did not move within {limit}") from error
        line.release, line.kv_digest = moved["release"], moved["digest"]
        line.kv_tokens, line.kv_bytes = moved["tokens"], moved["bytes"]
        line.save_ms, line.send_ms, line.restore_ms = (
            round(moved[what], 1) for what in ("save_ms", "send_ms", "restore_ms")
        )
        return Landing(place.route, moved["tokens"], moved["bytes"], begun, self._clock.now() - begun)

    async def _beat(self, gate: Endpoint, request: str) -> None:
        with contextlib.suppress(httpx.HTTPError):  # its worker is gone; the reply finds out by itself
            while True:
                await self._clock.sleep_until(self._clock.now() + self._limits.lease / _BEATS)
                answer = await self._http.post(gate.at(f"/places/{request}/heartbeat"), headers=gate.headers)
                if answer.status_code == 410:
                    return

    async def _give_back(self, gate: Endpoint, request: str) -> None:
        # Where its worker is gone, or busy, the lease runs out.
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(_FREE):
                await self._http.delete(gate.at(f"/places/{request}"), headers=gate.headers)

    async def _post(self, endpoint: Endpoint, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        try:
            answer = await self._http.post(endpoint.at(path), json=body, headers=endpoint.headers)
        except httpx.HTTPError as error:
            raise LanguageModelError(f"{endpoint.url}{path}: {error!r}") from error
        if answer.status_code == 503 and path == "/places":
            raise AdmissionRefusedError(str(answer.json()["error"]))
        if answer.status_code >= 400:
            raise LanguageModelError(f"{endpoint.url}{path}: {answer.text[:200]}")
        return dict(answer.json())
