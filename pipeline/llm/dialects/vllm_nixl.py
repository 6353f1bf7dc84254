"""Two vLLM engines joined by NixlConnector in pull mode: one reads, the other fetches that and answers.

Written for vLLM 0.32. Each turn has two legs on the chat endpoint, under one `X-Request-Id`:

    prefill  stream false, max_tokens 1, kv_transfer_params {do_remote_decode: true, …: null}
             → kv_transfer_params {remote_block_ids, remote_engine_id, remote_request_id, remote_host, …}
    decode   the original request with that object, unchanged

The prefill engine keeps what it read on a lease (30 s) until the decode engine has fetched it. A reply
without `kv_transfer_params` is refused here: with none, or with one that is not complete, the decode engine
reads the prompt itself and tells nobody. Whether it fetched is only seen afterwards, in cached_tokens
(engines must be started with --enable-prompt-tokens-details). Both legs carry the same `cache_salt`, one for
each tenant, so that no tenant finds another's prefix.

Nobody tells the prefill engine of a turn that is given up between the legs, and no request of a client can:
so the second leg is sent for one token and dropped, upon which the decode engine fetches and lets go.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx

from pipeline.clock import Clock
from pipeline.errors import LanguageModelError
from pipeline.events import Prompt
from pipeline.llm.dialects.openai import OpenAi, error_text
from pipeline.llm.pool.evidence import EvidenceLine
from pipeline.llm.route import Endpoint, Landing, Route, Sampling

NAME = "vllm_nixl"

ASK = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
"""What the first leg says of the second."""

NEEDED = ("remote_block_ids", "remote_engine_id", "remote_request_id", "remote_host", "remote_port")
"""Without one of these the decode engine silently reads the prompt itself."""

_LET_GO = 5.0
"""Seconds for having what was read dropped; the prefill engine's lease does it else."""


class SaltedOpenAi(OpenAi):
    """Either engine for both phases, with a salt that keeps a tenant's prefixes apart from all others'."""

    name = NAME

    def __init__(self, tenant: str) -> None:
        self.salt = hashlib.sha256(f"visavis {tenant}".encode()).hexdigest()[:32]

    def request(self, prompt: Prompt, route: Route, *, so_far: str, most: int) -> dict[str, Any]:
        return {**super().request(prompt, route, so_far=so_far, most=most), "cache_salt": self.salt}


class _SecondLeg(SaltedOpenAi):
    """The request that the decode engine gets, with what the prefill engine said of the first."""

    def __init__(self, tenant: str, place: "NixlPlace") -> None:
        super().__init__(tenant)
        self._place = place

    def request(self, prompt: Prompt, route: Route, *, so_far: str, most: int) -> dict[str, Any]:
        body = super().request(prompt, route, so_far=so_far, most=most)
        handed, self._place.handed = self._place.handed, None
        return body if handed is None else {**body, "kv_transfer_params": handed}


@dataclass(slots=True)
class NixlPlace:
    """A turn's way to the decode engine, which reserves nothing by itself."""

    route: Route
    handed: dict[str, Any] | None = None
    """What the prefill engine keeps for the second leg, until that is sent: it can be fetched once."""
    first: dict[str, Any] | None = None
    """The request that it read."""


class VllmNixl:
    """A `SplitEngine`. One serves any number of turns."""

    def __init__(
        self,
        prefill: Endpoint,
        decode: Endpoint,
        http: httpx.AsyncClient,
        clock: Clock,
        *,
        model: str,
        sampling: Sampling,
        tenant: str,
        first_leg: float = 20.0,
    ) -> None:
        """`first_leg`: seconds for reading a prompt."""
        self._prefill = prefill
        self._decode = decode
        self._http = http
        self._clock = clock
        self._model = model
        self._sampling = sampling
        self._tenant = tenant
        self._first_leg = first_leg

    def serving(self) -> str:
        return self._decode.url

    def by_prefill(self) -> Route:
        return self._route(self._prefill)

    @asynccontextmanager
    async def place(self, request: str) -> AsyncIterator[NixlPlace]:
        place = NixlPlace(self._route(self._decode, request))
        try:
            yield place
        finally:
            if place.handed is not None:
                await asyncio.shield(self._let_go(place, request))

    async def read(self, prompt: Prompt, place: NixlPlace, line: EvidenceLine) -> None:
        """The first leg. Raises LanguageModelError."""
        route = self._route(self._prefill, line.request)
        body = self._first(prompt, route)
        begun = self._clock.now()
        answer = await self._post(route, body, self._first_leg)
        line.read_ms = round((self._clock.now() - begun) * 1000, 1)
        handed = answer.get("kv_transfer_params")
        if not isinstance(handed, dict) or any(handed.get(field) is None for field in NEEDED):
            lacks = [field for field in NEEDED if not isinstance(handed, dict) or handed.get(field) is None]
            raise LanguageModelError(
                f"{route.endpoint.url} read a prompt and handed nothing over: its reply lacks "
                f"{', '.join(lacks)} of kv_transfer_params; was it started with NixlConnector?"
            )
        place.handed, place.first = handed, body
        prompt_tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
        line.kv_tokens = int(handed.get("remote_num_tokens") or prompt_tokens)
        line.read_tokens = max(0, prompt_tokens - int(handed.get("remote_prefill_cached_tokens") or 0))

    async def move(self, prompt: Prompt, place: NixlPlace, line: EvidenceLine) -> Landing:
        """Nothing moves before the second leg, with which the decode engine fetches it."""
        route = replace(place.route, dialect=_SecondLeg(self._tenant, place))
        return Landing(route, line.kv_tokens or 0, None, self._clock.now(), None)

    def _route(self, endpoint: Endpoint, request: str = "") -> Route:
        return Route(
            NAME,
            endpoint,
            SaltedOpenAi(self._tenant),
            self._model,
            sampling=self._sampling,
            headers={"X-Request-Id": request} if request else {},
        )

    def _first(self, prompt: Prompt, route: Route) -> dict[str, Any]:
        body = route.dialect.request(prompt, route, so_far="", most=1)
        del body["stream_options"]
        return {**body, "stream": False, "kv_transfer_params": ASK}

    async def _let_go(self, place: NixlPlace, request: str) -> None:
        """Have what the prefill engine keeps fetched and dropped."""
        handed, place.handed = place.handed, None
        body = {**(place.first or {}), "kv_transfer_params": handed}
        with contextlib.suppress(LanguageModelError):
            await self._post(place.route, body, _LET_GO)

    async def _post(self, route: Route, body: dict[str, Any], seconds: float) -> dict[str, Any]:
        endpoint = route.endpoint
        try:
            answer = await self._http.post(
                endpoint.at(route.dialect.path),
                json=body,
                headers={**endpoint.headers, **route.headers},
                timeout=seconds,
            )
            reply = answer.json()
        except httpx.HTTPError as error:
            raise LanguageModelError(f"{endpoint.url} read no prompt: {error!r}") from error
        except ValueError as error:
            raise LanguageModelError(f"{endpoint.url}: HTTP {answer.status_code}, no JSON") from error
        if answer.status_code != 200 or not isinstance(reply, dict) or "error" in reply:
            told = error_text(reply)[:200]
            raise LanguageModelError(f"{endpoint.url}: HTTP {answer.status_code}: {told}")
        return reply
