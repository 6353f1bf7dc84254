"""Two of our llama.cpp workers as one engine: what one has read goes to a slot of the other, which answers.

Against a worker's gate (services/engine/kv_gate.py) and llama.cpp's own server beside it:

    decode   POST /places {request, tenant}                      → {ticket, slot}
    prefill  POST /apply-template, POST /completion n_predict 0  the prompt, in the conversation's slot
    prefill  POST /handoffs {request, tenant, slot, ticket, to}  → {bytes, tokens, …}
    decode   POST /v1/chat/completions, id_slot                  the reply; one token of the prompt is read
    decode   DELETE /places/{request}                            whatever became of it

The place is reserved before anything is read, and given back exactly once, when the reply is over or was
given up. llama.cpp evaluates a prompt's last token anew, so the first token of a reply is the decoder's.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from pipeline.clock import Clock
from pipeline.errors import AdmissionRefusedError, LanguageModelError
from pipeline.events import Prompt
from pipeline.llm.dialects.llama_cpp import render
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
    """What the route's contract says of each hand-off. Seconds."""

    lease: float
    """For which the decode worker keeps a place for a request nobody asks for."""
    transfer_timeout: float
    alone: bool
    """Where one worker fails before the first token, the other answers alone."""


class LlamaCppSplit:
    """A `Split` of one conversation: `slot` is the prefill worker's that holds its prefix."""

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
        terms: SplitTerms,
    ) -> None:
        """Both raise LanguageModelError while their worker does not serve. `route`: to an engine's slot."""
        self._prefill = prefill
        self._decode = decode
        self._http = http
        self._clock = clock
        self._route = route
        self._slot = slot
        self._tenant = tenant
        self._terms = terms

    @asynccontextmanager
    async def handed_over(self, prompt: Prompt) -> AsyncIterator[Landing]:
        """The prompt read and its state where the reply is written, for as long as the context lasts.

        Where one of the two workers fails before there is anything of a reply, the other does it alone: both
        are of one release, and the prompt is the same. Raises AdmissionRefusedError when the decode worker
        has no place, LanguageModelError when neither serves.
        """
        request = secrets.token_urlsafe(16)
        async with AsyncExitStack() as scope:
            try:
                decode = self._decode()
                ticket, slot = await scope.enter_async_context(self._place(decode.gate, request))
            except LanguageModelError as error:
                if isinstance(error, AdmissionRefusedError) or not self._terms.alone:
                    raise
                _log.warning("the prefill worker answers alone: %s", error)
                landing = _alone(self._route(self._prefill().engine, self._slot))
            else:
                there = self._route(decode.engine, slot)
                try:
                    landing = await self._moved(prompt, there, request, ticket, decode.gate)
                except LanguageModelError as error:
                    if not self._terms.alone:
                        raise
                    _log.warning("the decode worker answers alone: %s", error)
                    landing = _alone(there)
            yield landing

    async def _moved(
        self, prompt: Prompt, there: Route, request: str, ticket: str, gate: Endpoint
    ) -> Landing:
        prefill = self._prefill()
        try:
            await self._read(prefill.engine, prompt)
            begun = self._clock.now()
            async with asyncio.timeout(self._terms.transfer_timeout):
                moved = await self._post(
                    prefill.gate,
                    "/handoffs",
                    request=request,
                    tenant=self._tenant,
                    slot=self._slot,
                    ticket=ticket,
                    to=gate.url,
                )
        except (httpx.HTTPError, TimeoutError) as error:
            raise LanguageModelError(f"the hand-off of {request} broke: {error!r}") from error
        return Landing(there, moved["tokens"], moved["bytes"], begun, self._clock.now() - begun)

    @asynccontextmanager
    async def _place(self, gate: Endpoint, request: str) -> AsyncIterator[tuple[str, int]]:
        beating: asyncio.Task[None] | None = None
        try:
            try:
                place = await self._post(gate, "/places", request=request, tenant=self._tenant)
            except httpx.HTTPError as error:
                raise LanguageModelError(f"{gate.url} did not reserve a place: {error!r}") from error
            beating = asyncio.create_task(self._beat(gate, request))
            yield place["ticket"], place["slot"]
        finally:
            if beating is not None:
                beating.cancel()
                await asyncio.wait({beating})
            # Also when the reservation was cancelled under way: it may have arrived.
            await asyncio.shield(self._give_back(gate, request))

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

    async def _read(self, engine: Endpoint, prompt: Prompt) -> None:
        text = await render(self._http, engine, prompt.messages)
        body = {"prompt": text, "n_predict": 0, "cache_prompt": True, "id_slot": self._slot}
        answer = await self._http.post(engine.at("/completion"), json=body, headers=engine.headers)
        answer.raise_for_status()

    async def _post(self, endpoint: Endpoint, path: str, **body: object) -> dict[str, Any]:
        answer = await self._http.post(endpoint.at(path), json=body, headers=endpoint.headers)
        if answer.status_code == 503:
            raise AdmissionRefusedError(str(answer.json()["error"]))
        if answer.status_code >= 400:
            raise LanguageModelError(f"{endpoint.url}{path}: {answer.text[:200]}")
        return dict(answer.json())


def _alone(route: Route) -> Landing:
    return Landing(route, 0, 0, None, 0.0, Pattern.SPLIT)
