"""Two vLLM engines with NixlConnector, as far as a client sees them, and as badly as they can behave.

Written from what is documented of vLLM 0.32 and its issues, not from our client: the protocol stands in
pipeline/llm/dialects/vllm_nixl.py. `blocks` is what the prefill engine holds for a second leg.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

PREFILL, DECODE = "http://prefill:8100", "http://decode:8200"

REPLY = ("I ", "am ", "well.")


class _Stream(httpx.AsyncByteStream):
    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            yield piece


@dataclass
class FakeVllm:
    """What goes wrong is set by the test."""

    legs: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)
    """(phase, body, X-Request-Id) of every request."""
    blocks: dict[str, int] = field(default_factory=dict)
    """Held by the prefill engine: its request → tokens."""
    gives_nothing: bool = False
    """The prefill engine was started without a connector: a plain reply."""
    lacks: str | None = None
    """A field that its hand-off lacks."""
    local: bool = False
    """The decode engine reads the prompt itself and says nothing of it."""
    load_fails: bool = False
    """kv_load_failure_policy fail: HTTP 200, an error in the stream, and [DONE]."""
    dead: set[str] = field(default_factory=set)
    """Phases that refuse connections."""
    error: str | None = None
    """HTTP 200 with an error for a body, from the prefill engine."""
    hold: asyncio.Event | None = None
    """The prefill engine answers once it is set."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """A request came."""

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        phase = "prefill" if request.url.host == "prefill" else "decode"
        if phase in self.dead:
            raise httpx.ConnectError("connection refused")
        body = json.loads(request.content)
        self.asked.set()
        self.legs.append((phase, body, request.headers.get("x-request-id")))
        asked = body.get("kv_transfer_params") or {}
        tokens = sum(len(message["content"].split()) for message in body["messages"])
        if asked.get("do_remote_decode"):
            return await self._first(tokens, request.headers["x-request-id"])
        fetched = self._fetched(asked)
        if not body["stream"]:
            return httpx.Response(200, json={"choices": [{}], "usage": {"prompt_tokens": tokens}})
        cached = tokens - 1 if fetched and not self.local else 0
        failed = bool(asked) and self.load_fails
        return httpx.Response(
            200,
            headers={"content-type": "text/event-stream"},
            stream=_Stream(self._answer(tokens, cached, failed=failed)),
        )

    async def _first(self, tokens: int, request: str) -> httpx.Response:
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            return httpx.Response(200, json={"error": {"message": self.error}})
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        if self.gives_nothing:
            return httpx.Response(200, json={"choices": [{}], "usage": usage})
        name = f"chatcmpl-{request}-0a1b2c3d"
        self.blocks[name] = tokens
        handed = {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [[1, 2]],
            "remote_engine_id": "e1",
            "remote_request_id": name,
            "remote_host": "127.0.0.1",
            "remote_port": 5600,
            "tp_size": 1,
            "remote_num_tokens": tokens,
            "remote_prefill_cached_tokens": 2,
        }
        if self.lacks is not None:
            del handed[self.lacks]
        return httpx.Response(200, json={"choices": [{}], "usage": usage, "kv_transfer_params": handed})

    def _fetched(self, handed: dict[str, Any]) -> bool:
        complete = all(handed.get(name) is not None for name in ("remote_request_id", "remote_block_ids"))
        return complete and self.blocks.pop(handed["remote_request_id"], None) is not None

    async def _answer(self, tokens: int, cached: int, *, failed: bool) -> AsyncIterator[bytes]:
        if failed:
            yield _event({"error": {"message": "Internal server error", "code": 500}})
            yield b"data: [DONE]\n\n"
            return
        yield _event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for text in REPLY:
            yield _event({"choices": [{"delta": {"content": text}}]})
        yield _event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        details = {"cached_tokens": cached}
        usage = {"prompt_tokens": tokens, "completion_tokens": 3, "prompt_tokens_details": details}
        yield _event({"choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()
