import json

import httpx
import pytest

from pipeline.errors import LanguageModelError
from pipeline.llm import tokens
from pipeline.llm.route import Endpoint
from pipeline.llm.tokens import EngineTokenCounter, EstimatedTokenCounter


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("👋", 2)])
async def test_estimate(text: str, count: int) -> None:
    assert await EstimatedTokenCounter().count(text) == count


class Engine:
    """Counts words and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        text = json.loads(request.content)["content"]
        self.asked.append(text)
        return httpx.Response(200, json={"tokens": list(range(len(text.split())))})


def counter(engine: Engine) -> EngineTokenCounter:
    http = httpx.AsyncClient(transport=httpx.MockTransport(engine))
    return EngineTokenCounter(lambda: Endpoint("http://engine:8000"), http)


async def test_a_text_is_counted_once() -> None:
    engine = Engine()
    count = counter(engine).count
    assert [await count("one two"), await count("three"), await count("one two"), await count("")] == [
        2,
        1,
        2,
        0,
    ]
    assert engine.asked == ["one two", "three"]


async def test_only_the_latest_counts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "REMEMBERED", 2)
    engine = Engine()
    count = counter(engine).count
    for text in ("a", "b", "a", "c", "a", "b"):
        await count(text)
    assert engine.asked == ["a", "b", "c", "b"]


async def test_an_engine_that_does_not_count_is_an_error() -> None:
    http = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: httpx.Response(500)))
    with pytest.raises(LanguageModelError, match="http://engine:8000"):
        await EngineTokenCounter(lambda: Endpoint("http://engine:8000"), http).count("x")
