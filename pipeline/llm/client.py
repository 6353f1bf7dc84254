"""Streams one prompt's reply over a route."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import httpx

from pipeline.clock import Clock
from pipeline.errors import LanguageModelError
from pipeline.events import Prompt, TextDelta, Usage
from pipeline.llm.dialects.openai import error_text
from pipeline.llm.route import Landing, Pattern, Route, Split, StreamEvent
from pipeline.llm.sse import EventDecoder, EventTooLongError
from pipeline.llm.turn_reader import TurnReader

QUOTED = 200
"""Characters of a server's own error that a message quotes."""

MEANINGS = {
    400: "it refused the request",
    401: "the API key is wrong or missing",
    403: "the API key may not use this model",
    404: "the address or the model name is wrong",
    429: "it is over its limits; try again later",
    503: "it is loading or overloaded; try again later",
}
"""What a status of a chat endpoint most often means."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds."""

    connect: float = 2.0
    first_token: float = 20.0
    """From the request to the first text: the whole prefill, and the wait for a busy engine."""
    token_gap: float = 10.0
    """Between two pieces of text."""


class LlmClient:
    """A LanguageModel on the other end of HTTP.

    The route is asked for at each call, because an engine that was restarted has a new address.
    """

    def __init__(
        self,
        route: Callable[[], Route],
        http: httpx.AsyncClient,
        clock: Clock,
        timeouts: Timeouts | None = None,
        reader: TurnReader | None = None,
        split: Split | None = None,
    ) -> None:
        """`reader` None: the engine cannot be asked how a turn goes on. `split`: prompts are answered by
        another engine than the one at the end of `route`, which reads them."""
        self._route = route
        self._split = split
        self._http = http
        self._clock = clock
        self._timeouts = timeouts or Timeouts()
        self._reader = reader

    async def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        """The reply, piece by piece; the last piece is empty and carries the usage.

        Closing the generator closes the connection, upon which the engine drops the request: at the
        next token while it decodes, within about a second and a batch while it prefills.
        Raises LanguageModelError, also when the stream ends without having finished.
        """
        if self._split is None:
            async with aclosing(self._answered(prompt, self._route())) as deltas:
                async for delta in deltas:
                    yield delta
            return
        async with (
            self._split.handed_over(prompt) as landing,
            aclosing(self._landed(prompt, landing, self._split)) as deltas,
        ):
            async for delta in deltas:
                yield delta

    async def _landed(
        self, prompt: Prompt, landing: Landing, split: Split
    ) -> AsyncGenerator[TextDelta, None]:
        """The reply from where a prompt has come to, or from elsewhere if not a word of it comes."""
        begun = False
        try:
            async with aclosing(self._answered(prompt, landing.route, landing)) as deltas:
                async for delta in deltas:
                    begun = begun or bool(delta.text)
                    if delta.usage is not None:
                        split.answered(landing, delta.usage)
                    yield delta
        except LanguageModelError as error:
            if begun:
                raise
            other = split.instead(landing, error)
        else:
            return
        async with aclosing(self._landed(prompt, other, split)) as deltas:
            async for delta in deltas:
                yield delta

    async def _answered(
        self, prompt: Prompt, route: Route, landing: Landing | None = None
    ) -> AsyncGenerator[TextDelta, None]:
        so_far, left = "", prompt.max_output_tokens
        total: Usage | None = None
        sizes = route.dialect.bursts or (left,)
        bursts = chain(sizes, repeat(sizes[-1]))
        while True:
            most = min(left, next(bursts))
            body = route.dialect.request(prompt, route, so_far=so_far, most=most)
            finish, usage = None, None
            async with aclosing(self._burst(route, body)) as events:
                async for event in events:
                    if event.text:
                        read_at = None if landing is None or so_far else landing.read_at
                        so_far += event.text
                        yield TextDelta(event.text, self._clock.now(), read_at=read_at)
                    finish, usage = event.finish or finish, event.usage or usage
            left -= most
            total = _sum(total, _with(usage, landing))
            if finish != "length" or left <= 0:
                break
        yield TextDelta("", self._clock.now(), total or Usage())

    async def _burst(self, route: Route, body: Mapping[str, Any]) -> AsyncGenerator[StreamEvent, None]:
        """One request's events; the waits for them are limited. Raises LanguageModelError."""
        finished = False
        loop = asyncio.get_running_loop()
        awaited, limit = "first", self._timeouts.first_token
        deadline = loop.time() + limit
        async with aclosing(self._events(route, body)) as events:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        event = await anext(events, None)
                except TimeoutError as error:
                    raise _failure(route, f"no {awaited} token within {limit:g} s") from error
                if event is None:
                    break
                if event.error is not None:
                    raise _failure(route, f"it gave up in mid-stream: {event.error[:QUOTED]}")
                finished = finished or event.finish is not None
                yield event
                if event.text:
                    # From here on and not from the arrival: what the taker of the text does with it is
                    # not the engine's delay.
                    awaited, limit = "next", self._timeouts.token_gap
                    deadline = loop.time() + limit
        if not finished:
            raise _failure(route, "the stream broke off before the reply was finished")

    async def warm(self, prompt: Prompt) -> None:
        """Have the engine read a prompt, so that prompts that begin like it start sooner.

        Costs one output token. Raises LanguageModelError.
        """
        async with aclosing(self._answered(replace(prompt, max_output_tokens=1), self._route())) as deltas:
            async for _ in deltas:
                pass

    async def read(self, prompt: Prompt) -> float | None:
        """Have the engine read a turn that may go on. See `LanguageModel.read`."""
        return None if self._reader is None else await self._reader.read(prompt)

    async def _events(self, route: Route, body: Mapping[str, Any]) -> AsyncGenerator[StreamEvent, None]:
        """What the engine streams, up to [DONE] or the end."""
        decoder = EventDecoder()
        try:
            response = await self._send(route, body)
            try:
                await _check(route, response)
                async for piece in response.aiter_bytes():
                    for data in decoder.feed(piece):
                        if data == "[DONE]":
                            return
                        yield _parse(route, data)
            finally:
                await response.aclose()
        except httpx.ConnectError as error:
            raise _failure(route, f"no connection; is it running? ({error})") from error
        except httpx.TimeoutException as error:
            raise _failure(route, f"no connection within {self._timeouts.connect:g} s") from error
        except httpx.HTTPError as error:
            raise _failure(route, f"the connection broke: {error or type(error).__name__}") from error
        except (httpx.InvalidURL, EventTooLongError, UnicodeDecodeError) as error:
            raise _failure(route, str(error)) from error

    async def _send(self, route: Route, body: Mapping[str, Any]) -> httpx.Response:
        headers = {**route.endpoint.headers, **route.headers}
        if not route.dialect.keeps_connection:
            headers["Connection"] = "close"
        request = self._http.build_request(
            "POST",
            route.endpoint.at(route.dialect.path),
            json=body,
            headers=headers,
            timeout=httpx.Timeout(None, connect=self._timeouts.connect),
        )
        try:
            return await self._http.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if not route.dialect.keeps_connection:
                raise
            # The server may have closed an idle connection just as we took it up: nothing came back,
            # so nothing can be spoken twice. A second failure is a real one.
            return await self._http.send(request, stream=True)


async def _check(route: Route, response: httpx.Response) -> None:
    """Raises LanguageModelError unless a stream of events follows."""
    if response.status_code != 200:
        body = (await response.aread()).decode("utf-8", "replace")
        try:
            reason = error_text(json.loads(body))
        except ValueError:
            reason = body
        meaning = MEANINGS.get(response.status_code, "look at its log")
        raise _failure(route, f"HTTP {response.status_code}, {meaning}: {reason.strip()[:QUOTED]}")
    content_type = response.headers.get("content-type", "")
    if not content_type.startswith("text/event-stream"):
        raise _failure(route, f"expected text/event-stream, got {content_type or 'no content type'}")


def _sum(before: Usage | None, burst: Usage | None) -> Usage | None:
    """Of a reply written in bursts: only the first one's prompt is the turn's."""
    if before is None or burst is None or before.output_tokens is None or burst.output_tokens is None:
        return before or burst
    return replace(before, output_tokens=before.output_tokens + burst.output_tokens)


def _with(usage: Usage | None, landing: Landing | None) -> Usage | None:
    """With the way that the prompt came. What the engine took from its cache came there by the hand-off."""
    if landing is None:
        return usage
    way = replace(
        usage or Usage(),
        pattern=landing.pattern.value,
        fallback_from=landing.fallback_from and landing.fallback_from.value,
        queue_seconds=landing.queued,
    )
    if landing.pattern is not Pattern.SPLIT:
        return way
    return replace(way, handed_tokens=landing.tokens, kv_bytes=landing.bytes, kv_seconds=landing.seconds)


def _parse(route: Route, data: str) -> StreamEvent:
    try:
        return route.dialect.parse(json.loads(data))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        what = f"it sent an event that dialect {route.dialect.name} does not know ({error})"
        raise _failure(route, what) from error


def _failure(route: Route, what: str) -> LanguageModelError:
    return LanguageModelError(f"language model {route.name} at {route.endpoint.url}: {what}")
