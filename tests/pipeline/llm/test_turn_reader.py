"""Reading a turn ahead, against a server that answers as llama.cpp's does."""

import json
import math
from typing import Any

import httpx
import pytest

from pipeline.errors import LanguageModelError
from pipeline.events import Message, Prompt, Role
from pipeline.llm.dialects.llama_cpp import LlamaCpp
from pipeline.llm.route import Endpoint, Route
from pipeline.llm.turn_reader import TurnReader

TOKENS = {"?": 0.6, ".": 0.1, "...": 0.05, " of": 0.1, "\n": 0.05, ".com": 0.02}


class Engine:
    """`/apply-template` and `/completion`."""

    def __init__(self) -> None:
        self.templates = 0
        self.completions: list[dict[str, Any]] = []
        self.status = 200
        self.tokens: dict[str, float] | None = TOKENS

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if request.url.path == "/apply-template":
            self.templates += 1
            text = "".join(f"<{m['role']}>{m['content']}</>" for m in body["messages"])
            return httpx.Response(self.status, json={"prompt": text + "<assistant>"})
        self.completions.append(body)
        if self.tokens is None:
            return httpx.Response(200, json={"content": "x"})
        likeliest = [{"token": token, "logprob": math.log(p)} for token, p in self.tokens.items()]
        return httpx.Response(self.status, json={"completion_probabilities": [{"top_logprobs": likeliest}]})


def prompt(*texts: str) -> Prompt:
    roles = [Role.USER, Role.ASSISTANT] * len(texts)
    return Prompt([Message(role, text) for role, text in zip(roles, texts, strict=False)], (), "digest", 80)


def reader(engine: Engine) -> TurnReader:
    route = Route("here", Endpoint("http://engine", "key"), LlamaCpp(), slot=3)
    return TurnReader(lambda: route, httpx.AsyncClient(transport=httpx.MockTransport(engine)))


async def test_the_words_are_read_as_the_reply_will_read_them_without_their_end() -> None:
    engine = Engine()
    likely = await reader(engine).read(prompt("Hello.", "Hi.", "What is the capital?"))
    (asked,) = engine.completions
    assert asked["prompt"] == "<user>Hello.</><assistant>Hi.</><user>What is the capital"
    assert (asked["id_slot"], asked["n_predict"], asked["cache_prompt"]) == (3, 1, True)
    assert likely == pytest.approx(0.6 + 0.1 + 0.05 + 0.02, abs=1e-6)


async def test_the_template_is_asked_for_once_while_the_history_stands() -> None:
    engine = Engine()
    reading = reader(engine)
    for words in ("What", "What is", "What is it?"):
        await reading.read(prompt("Hello.", "Hi.", words))
    assert engine.templates == 1
    await reading.read(prompt("Hello.", "Hi.", "What is it?", "A dog.", "Why"))
    assert engine.templates == 2


@pytest.mark.parametrize("words", ["", "…", " . "])
async def test_nothing_is_not_read(words: str) -> None:
    engine = Engine()
    assert await reader(engine).read(prompt(words)) is None
    assert engine.completions == []


async def test_a_hint_that_is_not_to_be_had_is_none() -> None:
    engine = Engine()
    engine.tokens = None
    assert await reader(engine).read(prompt("What is it?")) is None
    engine.status = 503
    assert await reader(engine).read(prompt("Hello", "Hi", "What is it?")) is None

    def gone() -> Route:
        raise LanguageModelError("the engine is restarting")

    http = httpx.AsyncClient(transport=httpx.MockTransport(engine))
    assert await TurnReader(gone, http).read(prompt("What is it?")) is None
