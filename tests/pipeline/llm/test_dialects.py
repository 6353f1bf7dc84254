"""Events as engines sent them, shortened; the llama.cpp ones by xllamacpp 2026.10.11549."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.events import Prompt, Usage
from pipeline.llm.dialects.llama_cpp import LlamaCpp
from pipeline.llm.dialects.openai import OpenAi
from pipeline.llm.route import Route, Sampling, StreamEvent

ROLE_ONLY = {
    "choices": [{"finish_reason": None, "index": 0, "delta": {"role": "assistant", "content": None}}]
}
TEXT = {"choices": [{"finish_reason": None, "index": 0, "delta": {"content": " short"}}]}
FINISH = {"choices": [{"finish_reason": "stop", "index": 0, "delta": {}}]}
LLAMA_USAGE = {
    "choices": [],
    "usage": {
        "completion_tokens": 20,
        "prompt_tokens": 322,
        "total_tokens": 342,
        "prompt_tokens_details": {"cached_tokens": 296},
    },
    "timings": {"cache_n": 296, "prompt_n": 26, "prompt_ms": 110.1, "predicted_n": 20, "predicted_ms": 215.2},
}
VLLM_USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 322, "completion_tokens": 20, "prompt_tokens_details": None},
}
VLLM_ERROR = {"error": {"message": "Internal server error", "type": "InternalServerError", "code": 500}}


@pytest.mark.parametrize(
    ("event", "parsed"),
    [
        (ROLE_ONLY, StreamEvent()),
        (TEXT, StreamEvent(" short")),
        (FINISH, StreamEvent(finish="stop")),
        (VLLM_USAGE, StreamEvent(usage=Usage(322, None, 20))),
        (LLAMA_USAGE, StreamEvent(usage=Usage(322, 296, 20))),
        (VLLM_ERROR, StreamEvent(error="Internal server error")),
        ({"error": "overloaded"}, StreamEvent(error="overloaded")),
        ({"choices": None, "usage": None}, StreamEvent()),
        ({"choices": [{"delta": None, "finish_reason": "length"}]}, StreamEvent(finish="length")),
    ],
)
def test_openai_events(event: dict[str, Any], parsed: StreamEvent) -> None:
    assert OpenAi().parse(event) == parsed


def test_llama_cpp_says_what_it_cached_even_without_usage() -> None:
    assert LlamaCpp().parse({"choices": [], "timings": LLAMA_USAGE["timings"]}).usage == Usage(322, 296, 20)


def test_openai_request_has_only_standard_fields(prompt: Prompt, route: Route) -> None:
    route = replace(route, sampling=Sampling(0.5, 0.8, repeat_penalty=1.1, seed=3, stop=("\n",)), slot=1)
    assert OpenAi().request(prompt, route, so_far="", most=40) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Hello there"}],
        "max_tokens": 40,
        "temperature": 0.5,
        "top_p": 0.8,
        "seed": 3,
        "stop": ["\n"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_what_is_not_set_is_not_sent(prompt: Prompt, route: Route) -> None:
    route = replace(route, model="", sampling=Sampling(seed=None, stop=(), repeat_penalty=None))
    assert {"model", "seed", "stop", "repeat_penalty", "id_slot"}.isdisjoint(
        LlamaCpp().request(prompt, route, so_far="", most=40)
    )


def test_llama_cpp_request_names_the_slot(prompt: Prompt, route: Route) -> None:
    body = LlamaCpp().request(prompt, replace(route, slot=0), so_far="", most=8)
    assert (body["id_slot"], body["cache_prompt"], body["repeat_penalty"]) == (0, True, 1.05)


def test_llama_cpp_writes_on_where_the_reply_was_left(prompt: Prompt, route: Route) -> None:
    body = LlamaCpp().request(prompt, route, so_far="The sky is", most=24)
    assert body["messages"][-1] == {"role": "assistant", "content": "The sky is"}
    assert body["max_tokens"] == 24


@pytest.mark.parametrize("base", ["http://e:1", "http://e:1/", "http://e:1/v1", "http://e:1/v1/"])
def test_addresses_with_and_without_v1(base: str, route: Route) -> None:
    assert replace(route.endpoint, url=base).at("/v1/chat/completions") == "http://e:1/v1/chat/completions"


def test_the_key_does_not_show(route: Route) -> None:
    assert "sesame" not in repr(route)
