"""How many tokens a text is: asked of the engine, or estimated."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import httpx

from pipeline.errors import LanguageModelError
from pipeline.llm.dialects.llama_cpp import count_tokens
from pipeline.llm.route import Endpoint

REMEMBERED = 16_384
"""Texts whose counts are kept, about 2 MB: a conversation's history is counted once, not once a turn, and
a history that did not fit would miss every time."""


class TokenCounter(Protocol):
    async def count(self, text: str) -> int:
        """Tokens of a text without chat template. Raises LanguageModelError."""
        ...


class EstimatedTokenCounter:
    """UTF-8 bytes / 3, for endpoints that do not count.

    Tokenizers of current models average 4 to 4.5 bytes a token on English and stay above 3 on most
    prose, so this errs on the safe side; text that is mostly rare symbols can exceed it.
    """

    async def count(self, text: str) -> int:
        return -(-len(text.encode("utf-8")) // 3)


class EngineTokenCounter:
    """Counts with llama.cpp's own tokenizer over HTTP and remembers the latest counts, by digest."""

    def __init__(self, endpoint: Callable[[], Endpoint], http: httpx.AsyncClient) -> None:
        self._endpoint = endpoint
        self._http = http
        self._known: OrderedDict[bytes, int] = OrderedDict()

    async def count(self, text: str) -> int:
        if not text:
            return 0
        key = hashlib.sha256(text.encode("utf-8")).digest()
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        endpoint = self._endpoint()
        try:
            tokens = await count_tokens(self._http, endpoint, text)
        except httpx.HTTPError as error:
            raise LanguageModelError(f"{endpoint.url} did not count tokens: {error!r}") from error
        self._known[key] = tokens
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return tokens
