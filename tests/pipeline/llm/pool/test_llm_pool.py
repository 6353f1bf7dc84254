import json

import httpx
import pytest

from pipeline.clock import VirtualClock
from pipeline.errors import ConfigError, LanguageModelError, ServerFullError
from pipeline.events import Prompt
from pipeline.llm.pool.llm_pool import LlmPool
from pipeline.llm.route import Endpoint
from pipeline.llm.tokens import EstimatedTokenCounter


class LlamaServer:
    """What the pool uses of llama.cpp's server."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.erased: list[int] = []
        self.chats: list[dict[str, object]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/slots":
            return httpx.Response(200, json=[{"id": slot} for slot in range(self.slots)])
        if path.startswith("/slots/"):
            assert request.url.params["action"] == "erase"
            self.erased.append(int(path.removeprefix("/slots/")))
            return httpx.Response(200, json={"n_erased": 5})
        if path == "/tokenize":
            return httpx.Response(200, json={"tokens": [1, 2, 3]})
        assert path == "/v1/chat/completions"
        self.chats.append(json.loads(request.content))
        text = 'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\n'
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=text)


def pool(server: LlamaServer, slots: int | None) -> LlmPool:
    transport = httpx.MockTransport(server)
    return LlmPool(lambda: Endpoint("http://e:1"), VirtualClock(), slots=slots, transport=transport)


async def test_each_conversation_has_a_slot_and_tokens_counted_by_the_engine(prompt: Prompt) -> None:
    server = LlamaServer(2)
    async with pool(server, 2) as llm:
        async with llm.conversation() as one, llm.conversation() as two:
            assert llm.free == 0
            for conversation in (one, two, one):
                await conversation.language_model.warm(prompt)
            assert await one.counter.count("text") == 3
            with pytest.raises(ServerFullError):
                await llm.conversation().__aenter__()
        assert llm.free == 2
    assert server.erased == [0, 1]
    assert [chat["id_slot"] for chat in server.chats] == [0, 1, 0]


async def test_more_slots_than_the_engine_has_would_mix_conversations() -> None:
    server = LlamaServer(1)
    async with pool(server, 2) as llm, llm.conversation():
        with pytest.raises(ConfigError, match=r"server\.max_sessions: expected at most 1"):
            await llm.conversation().__aenter__()
        assert llm.free == 1
    assert server.erased == [0]


async def test_any_other_endpoint_has_no_slots(prompt: Prompt) -> None:
    server = LlamaServer(0)
    async with pool(server, None) as llm, llm.conversation() as one, llm.conversation() as two:
        assert llm.free is None
        assert isinstance(one.counter, EstimatedTokenCounter)
        await two.language_model.warm(prompt)
    assert "id_slot" not in server.chats[0]


async def test_no_conversation_begins_without_an_engine() -> None:
    def nowhere() -> Endpoint:
        raise LanguageModelError("the embedded engine is restarting")

    async with LlmPool(nowhere, VirtualClock(), slots=1) as llm:
        with pytest.raises(LanguageModelError, match="restarting"):
            await llm.conversation().__aenter__()
        assert llm.free == 1


async def test_an_engine_that_does_not_answer_is_named() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(500))
    async with LlmPool(lambda: Endpoint("http://e:1"), VirtualClock(), slots=1, transport=transport) as llm:
        with pytest.raises(LanguageModelError, match="http://e:1 did not erase"):
            await llm.conversation().__aenter__()
        assert llm.free == 1
