"""llama.cpp's server: OpenAI's chat endpoint plus slots and timings.

Measured on the wheel xllamacpp 2026.10.11549.
Sent besides OpenAI's fields: id_slot, cache_prompt, repeat_penalty.
Read besides OpenAI's fields, in the last event: timings.{cache_n, prompt_n, predicted_n} (tokens taken
from the slot's cache, prefilled, decoded). `cache_n` is set where usage.prompt_tokens_details is not.
POST /slots/{id}?action=erase → {id_slot, n_erased}; it waits for the slot to be idle, and needs a
`slot_save_path`. A slot number the engine does not have is *not* refused: a chat request goes to another
slot, with another conversation's cache, and an erase does nothing. So the number is checked in
GET /slots → [{id, …}] first.
POST /tokenize {content} → {tokens: […]}; markers such as <|im_end|> inside the text count as one token.
POST /apply-template {messages} → {prompt}: the messages and the opening of a reply as the model's template
writes them.
POST /completion {prompt, n_predict, n_probs, id_slot, cache_prompt} → {completion_probabilities:
[{top_logprobs: [{token, logprob}]}]}: with `post_sampling_probs` false, before any sampler.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx

from pipeline.errors import ConfigError
from pipeline.events import Message, Prompt, Usage
from pipeline.llm.dialects.openai import OpenAi
from pipeline.llm.route import Endpoint, Json, Route, StreamEvent

_LIKELIEST = 64
"""Next tokens looked at for the end of a sentence; what the others hold together does not matter."""

_SENTENCE_END = re.compile(r"\s*[.?!](?!\.)|\n|<\|im_end\|>|<\|endoftext\|>|</s>")


class LlamaCpp(OpenAi):
    """llama.cpp's server, one slot per conversation."""

    name = "llama_cpp"
    # It promises `Keep-Alive: timeout=5` and closes after a stream all the same.
    keeps_connection = False
    # Writing on is nearly free, 2 ms, since the slot holds what was written; and while nobody reads, the
    # engine leaves the processor to the voice, which needs it for the first clause. The first burst is
    # about a clause, the second what that may want for.
    bursts: tuple[int, ...] | None = (8, 6, 24)

    def request(self, prompt: Prompt, route: Route, *, so_far: str, most: int) -> dict[str, Any]:
        body = super().request(prompt, route, so_far=so_far, most=most)
        if so_far:
            # A closing message of the assistant's is what the reply begins with, and it is not sent again.
            body["messages"].append({"role": "assistant", "content": so_far})
        body["cache_prompt"] = True
        if route.slot is not None:
            body["id_slot"] = route.slot
        if route.sampling.repeat_penalty is not None:
            body["repeat_penalty"] = route.sampling.repeat_penalty
        return body

    def parse(self, event: Json) -> StreamEvent:
        parsed = super().parse(event)
        timings = event.get("timings")
        if not timings:
            return parsed
        cached, prefilled = timings.get("cache_n", 0), timings.get("prompt_n", 0)
        return replace(parsed, usage=Usage(cached + prefilled, cached, timings.get("predicted_n")))


async def erase_slot(http: httpx.AsyncClient, endpoint: Endpoint, slot: int) -> int:
    """Empty a slot's cache once it is idle; returns the tokens it held.

    Raises httpx.HTTPError, and ConfigError when the engine has no such slot.
    """
    answer = await http.get(endpoint.at("/slots"), headers=endpoint.headers)
    answer.raise_for_status()
    known = [entry["id"] for entry in answer.json()]
    if slot not in known:
        raise ConfigError(
            f"server.max_sessions: expected at most {len(known)}, as many as {endpoint.url} has slots"
        )
    answer = await http.post(
        endpoint.at(f"/slots/{slot}"), params={"action": "erase"}, headers=endpoint.headers
    )
    answer.raise_for_status()
    return int(answer.json()["n_erased"])


async def count_tokens(http: httpx.AsyncClient, endpoint: Endpoint, text: str) -> int:
    """Tokens of a text by the engine's own tokenizer. Raises httpx.HTTPError."""
    answer = await http.post(endpoint.at("/tokenize"), json={"content": text}, headers=endpoint.headers)
    answer.raise_for_status()
    return len(answer.json()["tokens"])


async def render(http: httpx.AsyncClient, endpoint: Endpoint, messages: Sequence[Message]) -> str:
    """Messages as the model's chat template writes them. Raises httpx.HTTPError."""
    body = {"messages": [{"role": message.role.value, "content": message.text} for message in messages]}
    answer = await http.post(endpoint.at("/apply-template"), json=body, headers=endpoint.headers)
    answer.raise_for_status()
    return str(answer.json()["prompt"])


async def sentence_end(http: httpx.AsyncClient, route: Route, text: str) -> float:
    """Prefill a rendered text into the route's slot; the probability that a sentence ends after it.

    Raises httpx.HTTPError, LookupError when the engine gives no probabilities.
    """
    body = {
        "prompt": text,
        "n_predict": 1,
        "n_probs": _LIKELIEST,
        "cache_prompt": True,
        "id_slot": route.slot,
        "samplers": [],
    }
    answer = await http.post(route.endpoint.at("/completion"), json=body, headers=route.endpoint.headers)
    answer.raise_for_status()
    likeliest = answer.json()["completion_probabilities"][0]["top_logprobs"]
    ends = (each["logprob"] for each in likeliest if _SENTENCE_END.match(each["token"]))
    return min(1.0, sum(map(math.exp, ends)))
