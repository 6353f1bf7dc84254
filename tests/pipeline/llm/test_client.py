"""The client against a transport that answers as told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace

import httpx
import pytest

from pipeline.clock import VirtualClock
from pipeline.errors import LanguageModelError
from pipeline.events import Prompt, TextDelta, Usage
from pipeline.llm.client import LlmClient, Timeouts
from pipeline.llm.dialects.llama_cpp import LlamaCpp
from pipeline.llm.route import Endpoint, Route

Handler = Callable[[httpx.Request], httpx.Response]


def text(piece: str) -> dict[str, object]:
    return {"choices": [{"delta": {"content": piece}, "finish_reason": None}]}


ROLE: dict[str, object] = {"choices": [{"delta": {"role": "assistant", "content": None}}]}
STOP: dict[str, object] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
USAGE: dict[str, object] = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
REPLY = (ROLE, text("Hello"), text(" you"), STOP, USAGE)


def event(data: object) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


class Body(httpx.AsyncByteStream):
    """Bytes of a stream; remembers whether it was closed. None stands still until closed."""

    def __init__(self, *pieces: bytes | None) -> None:
        self.pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if piece is None:
                await asyncio.Event().wait()
            else:
                yield piece

    async def aclose(self) -> None:
        self.closed = True


def streaming(*pieces: bytes | None) -> tuple[Handler, Body]:
    body = Body(*pieces)
    headers = {"content-type": "text/event-stream"}
    return lambda request: httpx.Response(200, headers=headers, stream=body), body


def answering(status: int, body: object) -> Handler:
    return lambda request: httpx.Response(status, json=body)


def failing(error: type[httpx.TransportError]) -> Handler:
    def handler(request: httpx.Request) -> httpx.Response:
        raise error("boom", request=request)

    return handler


class Client:
    """An LlmClient over a handler, for one test."""

    def __init__(self, handler: Handler, route: Route, timeouts: Timeouts | None = None) -> None:
        self.clock = VirtualClock(5.0)
        self.http = httpx.AsyncClient(transport=httpx.MockTransport(handler))
        self.client = LlmClient(lambda: route, self.http, self.clock, timeouts)

    async def reply(self, prompt: Prompt) -> list[TextDelta]:
        async with self.http, aclosing(self.client.stream(prompt)) as deltas:
            return [delta async for delta in deltas]


async def test_a_reply(prompt: Prompt, route: Route) -> None:
    handler, body = streaming(b": ping\n\n", *map(event, REPLY), b"data: [DONE]\n\n")
    deltas = await Client(handler, route).reply(prompt)
    assert deltas == [
        TextDelta("Hello", 5.0),
        TextDelta(" you", 5.0),
        TextDelta("", 5.0, Usage(9, None, 2)),
    ]
    assert body.closed


async def test_a_reply_chopped_anywhere(prompt: Prompt, route: Route) -> None:
    whole = b"".join(map(event, REPLY)) + b"data: [DONE]\n\n"
    for at in range(len(whole)):
        handler, _ = streaming(whole[:at], whole[at:])
        deltas = await Client(handler, route).reply(prompt)
        assert "".join(delta.text for delta in deltas) == "Hello you", at
        assert deltas[-1].usage == Usage(9, None, 2), at


async def test_the_end_of_the_stream_will_do_without_done(prompt: Prompt, route: Route) -> None:
    handler, _ = streaming(*map(event, REPLY))
    assert len(await Client(handler, route).reply(prompt)) == 3


async def test_usage_may_be_missing(prompt: Prompt, route: Route) -> None:
    handler, _ = streaming(event(text("Hi")), event(STOP))
    assert (await Client(handler, route).reply(prompt))[-1].usage == Usage()


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (failing(httpx.ConnectError), "is it running"),
        (failing(httpx.ConnectTimeout), "no connection within"),
        (failing(httpx.RemoteProtocolError), "the connection broke"),
        (answering(401, {"error": {"message": "Invalid API Key"}}), "401.*key.*Invalid API Key"),
        (answering(404, {"detail": "no such model"}), "404.*address or the model name"),
        (answering(400, {"error": "exceeds the context"}), "400.*exceeds the context"),
        (lambda _: httpx.Response(500, text="oops"), "500.*oops"),
        (lambda _: httpx.Response(503, text=""), "503.*try again later"),
        (
            lambda _: httpx.Response(200, html="<p>a proxy's page</p>"),
            "expected text/event-stream, got text/html",
        ),
        (streaming(event({"error": {"message": "out of memory"}}), b"data: [DONE]\n\n")[0], "out of memory"),
        (streaming(event(text("Hal")))[0], "broke off"),
        (streaming(event(text("Hal")), b"data: [DONE]\n\n")[0], "broke off"),
        (streaming(b"data: {not json\n\n")[0], "does not know"),
        (streaming(b'data: {"choices": 5}\n\n')[0], "does not know"),
        (streaming(b"data: \xff\n\n")[0], "utf-8"),
    ],
)
async def test_failures_name_the_endpoint_and_the_reason(
    handler: Handler, says: str, prompt: Prompt, route: Route
) -> None:
    with pytest.raises(LanguageModelError, match=says) as caught:
        await Client(handler, route).reply(prompt)
    assert "http://engine:8000" in str(caught.value)
    assert "sesame" not in str(caught.value)


async def test_text_before_a_failure_is_delivered(prompt: Prompt, route: Route) -> None:
    handler, _ = streaming(event(text("Hel")), event(text("lo")))
    client = Client(handler, route)
    async with client.http, aclosing(client.client.stream(prompt)) as deltas:
        assert [(await anext(deltas)).text for _ in range(2)] == ["Hel", "lo"]
        with pytest.raises(LanguageModelError):
            await anext(deltas)


@pytest.mark.parametrize(
    ("pieces", "says"),
    [
        ([None], "no first token within 0.01 s"),
        ([event(ROLE), None], "no first token within 0.01 s"),
        ([b": ping\n\n", None], "no first token within 0.01 s"),
        ([event(text("Hel")), None], "no next token within 0.02 s"),
        ([event(text("Hel")), event(STOP), None], "no next token within 0.02 s"),
    ],
)
async def test_timeouts(pieces: list[bytes | None], says: str, prompt: Prompt, route: Route) -> None:
    handler, body = streaming(*pieces)
    with pytest.raises(LanguageModelError, match=says):
        await Client(handler, route, Timeouts(first_token=0.01, token_gap=0.02)).reply(prompt)
    assert body.closed


async def test_a_taker_that_dawdles_is_not_the_engines_delay(prompt: Prompt, route: Route) -> None:
    handler, _ = streaming(*map(event, REPLY))
    client = Client(handler, route, Timeouts(first_token=5, token_gap=0.05))
    seen = ""
    async with client.http, aclosing(client.client.stream(prompt)) as deltas:
        async for delta in deltas:
            seen += delta.text
            await asyncio.sleep(0.1)
    assert seen == "Hello you"


async def test_closing_early_closes_the_stream(prompt: Prompt, route: Route) -> None:
    handler, body = streaming(event(text("Hel")), None)
    client = Client(handler, route)
    async with client.http:
        async with aclosing(client.client.stream(prompt)) as deltas:
            await anext(deltas)
            assert not body.closed
        assert body.closed


async def test_cancelling_closes_the_stream(prompt: Prompt, route: Route) -> None:
    handler, body = streaming(event(text("Hel")), None)
    client = Client(handler, route)
    begun = asyncio.Event()

    async def take() -> None:
        async with aclosing(client.client.stream(prompt)) as deltas:
            async for _ in deltas:
                begun.set()

    async with client.http:
        task = asyncio.create_task(take())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert body.closed


@pytest.mark.parametrize("error", [httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError])
async def test_a_stale_connection_costs_one_more_try(
    error: type[httpx.TransportError], prompt: Prompt, route: Route
) -> None:
    good, _ = streaming(*map(event, REPLY))
    tries = [failing(error), good]

    def handler(request: httpx.Request) -> httpx.Response:
        return tries.pop(0)(request)

    assert len(await Client(handler, route).reply(prompt)) == 3


async def test_two_broken_connections_are_a_failure(prompt: Prompt, route: Route) -> None:
    tries: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        tries.append(request)
        raise httpx.ReadError("gone", request=request)

    with pytest.raises(LanguageModelError, match="gone"):
        await Client(handler, route).reply(prompt)
    assert len(tries) == 2


async def test_llama_cpp_is_told_to_close_and_not_asked_twice(prompt: Prompt, route: Route) -> None:
    tries: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        tries.append(request)
        raise httpx.ReadError("gone", request=request)

    with pytest.raises(LanguageModelError, match="gone"):
        await Client(handler, replace(route, dialect=LlamaCpp())).reply(prompt)
    assert [request.headers["connection"] for request in tries] == ["close"]


async def test_the_route_is_asked_for_at_each_call(prompt: Prompt, route: Route) -> None:
    good: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        good.append(f"{request.url} {request.headers['authorization']}")
        return streaming(*map(event, REPLY))[0](request)

    routes = [replace(route, endpoint=Endpoint(f"http://engine:{port}", f"key{port}")) for port in (1, 2)]
    async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as http:
        client = LlmClient(lambda: routes.pop(0), http, VirtualClock())
        for _ in range(2):
            async with aclosing(client.stream(prompt)) as deltas:
                assert [delta async for delta in deltas]
    assert good == [
        "http://engine:1/v1/chat/completions Bearer key1",
        "http://engine:2/v1/chat/completions Bearer key2",
    ]


async def test_warming_asks_for_one_token(prompt: Prompt, route: Route) -> None:
    bodies: list[dict[str, object]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return streaming(*map(event, REPLY))[0](request)

    client = Client(handler, route)
    async with client.http:
        await client.client.warm(prompt)
    assert [body["max_tokens"] for body in bodies] == [1]
