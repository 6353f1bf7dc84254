"""Plain OpenAI chat completions, streamed.

Sent to /v1/chat/completions: model, messages[{role, content}], max_tokens, temperature, top_p, seed,
stop, stream, stream_options.include_usage.
Read from each event: choices[0].delta.content, choices[0].finish_reason, usage.{prompt_tokens,
completion_tokens, prompt_tokens_details.cached_tokens}, error.{message}. The usage comes in a last
event whose choices are empty; the first event often names only the role. vLLM 0.32 reports a failure
in mid-stream as an event with an error object and *then* `[DONE]` (its chat_completion/serving.py), so
`[DONE]` alone says nothing about success.
"""

from typing import Any

from pipeline.events import Prompt, Usage
from pipeline.llm.route import Json, Route, StreamEvent


class OpenAi:
    """Any server with an OpenAI-compatible chat endpoint."""

    name = "openai"
    path = "/v1/chat/completions"
    keeps_connection = True
    bursts: tuple[int, ...] | None = None

    def request(self, prompt: Prompt, route: Route, *, so_far: str, most: int) -> dict[str, Any]:
        sampling = route.sampling
        body: dict[str, Any] = {
            "messages": [
                {"role": message.role.value, "content": message.text} for message in prompt.messages
            ],
            "max_tokens": most,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if route.model:
            body["model"] = route.model
        if sampling.seed is not None:
            body["seed"] = sampling.seed
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        return body

    def parse(self, event: Json) -> StreamEvent:
        if "error" in event:
            return StreamEvent(error=error_text(event))
        text, finish = "", None
        choices = event.get("choices") or ()
        if choices:
            delta = choices[0].get("delta") or {}
            text = delta.get("content") or ""
            finish = choices[0].get("finish_reason")
        return StreamEvent(text, finish, _usage(event.get("usage")))


def _usage(usage: Json | None) -> Usage | None:
    if not usage:
        return None
    details = usage.get("prompt_tokens_details") or {}
    return Usage(usage.get("prompt_tokens"), details.get("cached_tokens"), usage.get("completion_tokens"))


def error_text(body: object) -> str:
    """What a server says went wrong: `{"error": {"message": …}}`, `{"error": "…"}` or whatever it sent."""
    error = body.get("error", body) if isinstance(body, dict) else body
    text = error.get("message", error) if isinstance(error, dict) else error
    return str(text)
