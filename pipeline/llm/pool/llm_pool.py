"""What outlives a conversation on the language model's side: connections, slots, and where the engine is."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import httpx

from pipeline.clock import Clock
from pipeline.errors import LanguageModelError
from pipeline.llm.client import LlmClient, Timeouts
from pipeline.llm.dialects.llama_cpp import LlamaCpp, erase_slot
from pipeline.llm.dialects.openai import OpenAi
from pipeline.llm.pool.leases import SlotLeases
from pipeline.llm.route import Dialect, Endpoint, Route, Sampling, Split
from pipeline.llm.tokens import EngineTokenCounter, EstimatedTokenCounter, TokenCounter
from pipeline.llm.turn_reader import TurnReader

IDLE_CONNECTION = 4.0
"""Seconds a connection is kept for the next request; llama.cpp's server closes them after 5."""


OpenSplit = Callable[[httpx.AsyncClient, int | None], Split]
"""Makes one conversation's way through a split engine, given the slot that holds its prefix, if any."""


@dataclass(frozen=True, slots=True)
class LlmSession:
    """One conversation's access to the language model."""

    language_model: LlmClient
    counter: TokenCounter


class LlmPool:
    """Hands conversations their access to one endpoint; open it once, around all of them.

    With `slots` the endpoint is a llama.cpp server: each conversation gets a slot of its own and tokens
    are counted by the engine. Without, it is any OpenAI-compatible server: tokens are estimated, and how
    many conversations there may be is not decided here.
    """

    def __init__(
        self,
        endpoint: Callable[[], Endpoint],
        clock: Clock,
        *,
        slots: int | None = None,
        model: str = "",
        sampling: Sampling | None = None,
        timeouts: Timeouts | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        dialect: Dialect | None = None,
        split: OpenSplit | None = None,
    ) -> None:
        """`endpoint` is asked at each request and raises LanguageModelError while there is none; it is who
        reads prompts, where `split` says that another answers them. `dialect` None: that of llama.cpp with
        `slots`, else OpenAI's. `transport` replaces the network.
        """
        self._endpoint = endpoint
        self._split = split
        self._dialect = dialect or (OpenAi() if slots is None else LlamaCpp())
        self._clock = clock
        self._model = model
        self._sampling = sampling or Sampling()
        self._timeouts = timeouts or Timeouts()
        self._http = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(self._timeouts.first_token, connect=self._timeouts.connect),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=IDLE_CONNECTION),
            # A proxy that the environment names is for the outside world, not for an engine of ours.
            trust_env=slots is None,
        )
        self._leases = SlotLeases(slots, self._erase) if slots is not None else None
        self._counter: TokenCounter = (
            EstimatedTokenCounter() if slots is None else EngineTokenCounter(endpoint, self._http)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    @property
    def free(self) -> int | None:
        """Conversations that could begin now; None where nobody counts."""
        return None if self._leases is None else self._leases.free

    @asynccontextmanager
    async def conversation(self) -> AsyncIterator[LlmSession]:
        """Access for one conversation. Raises ServerFullError, LanguageModelError, ConfigError."""
        if self._leases is None:
            yield self._session(None)
        else:
            async with self._leases.lease() as slot:
                yield self._session(slot)

    def _session(self, slot: int | None) -> LlmSession:
        def route() -> Route:
            return Route(
                name=self._dialect.name,
                endpoint=self._endpoint(),
                dialect=self._dialect,
                model=self._model,
                slot=slot,
                sampling=self._sampling,
            )

        split = None if self._split is None else self._split(self._http, slot)
        reader = None if slot is None else TurnReader(route, self._http)
        client = LlmClient(route, self._http, self._clock, self._timeouts, reader, split)
        return LlmSession(client, self._counter)

    async def _erase(self, slot: int) -> None:
        endpoint = self._endpoint()
        try:
            await erase_slot(self._http, endpoint, slot)
        except httpx.HTTPError as error:
            raise LanguageModelError(f"{endpoint.url} did not erase slot {slot}: {error!r}") from error
