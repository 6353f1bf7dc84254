"""Where a prompt goes and how: endpoint, slot, sampling, and the dialect that the engine speaks."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from pipeline.errors import LanguageModelError
from pipeline.events import Prompt, Usage

Json = Mapping[str, Any]
"""A JSON object as it came off the wire: nothing in it is known to be there."""


class Pattern(StrEnum):
    """How the engines behind a route divide a turn's work."""

    COLOCATED = "colocated"
    """One engine prefills and decodes."""
    SPLIT = "split"
    """One prefills, another decodes."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks HTTP."""

    url: str
    """Scheme, host, port and path prefix, such as http://127.0.0.1:8000, with or without /v1 after it."""
    api_key: str | None = field(default=None, repr=False)

    def at(self, path: str) -> str:
        """The address of a path such as /v1/models or /slots."""
        return self.url.rstrip("/").removesuffix("/v1") + path

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn. What is None is left to the engine.

    The defaults suit SmolLM2-135M-Instruct: chosen by ear over twenty spoken questions, they give
    answers of 26 tokens on average that end by themselves.
    """

    temperature: float = 0.2
    top_p: float = 0.9
    repeat_penalty: float | None = 1.05
    """llama.cpp's; 1 is none. Plain OpenAI endpoints have no such field and do not get it."""
    seed: int | None = None
    stop: tuple[str, ...] = ("\n\n",)
    """A second paragraph is not a spoken answer any more."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """What one event of an engine's stream says."""

    text: str = ""
    finish: str | None = None
    """Why the reply is over: stop, length, …; None while it goes on."""
    usage: Usage | None = None
    error: str | None = None
    """The engine's own words, when it gives up in mid-stream."""


class Dialect(Protocol):
    """One engine's wire protocol."""

    name: str
    path: str
    """Of the chat endpoint, below the endpoint's URL."""
    keeps_connection: bool
    """False when the server closes a connection after streaming over it: then we say so first, so
    that the next request never meets a connection that is about to close."""

    bursts: tuple[int, ...] | None
    """Most tokens to ask for, request by request, the last size again and again; None: all at once."""

    def request(self, prompt: Prompt, route: "Route", *, so_far: str, most: int) -> dict[str, Any]:
        """The body that asks for `most` tokens, as a stream, of the reply that begins with `so_far`."""
        ...

    def parse(self, event: Json) -> StreamEvent: ...


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a prompt's state has come to, and what that took."""

    route: "Route"
    """To where the reply is written."""
    tokens: int
    """That the state holds."""
    bytes: int | None
    """None where the engine does not tell."""
    read_at: float | None
    """When the prompt was read, and its state set out; None where it did not."""
    seconds: float | None
    """That it was under way; None where the engine does not tell."""
    queued: float | None = None
    """Seconds that it waited for room; None where it needed none."""
    pattern: Pattern = Pattern.SPLIT
    """How it is answered: COLOCATED where one worker reads and writes, and nothing moved."""
    fallback_from: Pattern | None = None
    """The pattern that failed, where another took its place."""
    request: str = ""
    """The turn's name on its way."""


class Split(Protocol):
    """Has a prompt read by one engine and answered by another."""

    def instead(self, landing: Landing, error: LanguageModelError) -> Landing:
        """Where a prompt goes whose landing failed it with `error` before the first token.

        Raises that error when nowhere.
        """
        ...

    def answered(self, landing: Landing, usage: Usage) -> None:
        """The reply is over, and the engine says what it did for it."""
        ...

    def handed_over(self, prompt: Prompt) -> AbstractAsyncContextManager[Landing]:
        """The prompt read and its state moved, for as long as the context lasts."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """Everything a client needs to have one prompt answered."""

    name: str
    endpoint: Endpoint
    dialect: Dialect
    model: str = ""
    """As the endpoint names it; empty when it serves only one."""
    slot: int | None = None
    """The engine's slot that holds this conversation's cache; None where the engine has none."""
    sampling: Sampling = field(default_factory=Sampling)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent besides the endpoint's own."""
