"""Reads a turn into the engine's cache while it is still being said.

What it gains is twofold: the words are prefilled before the reply is asked for, and the engine's own
next-token probabilities say whether a sentence ends here, which tells the end of a turn from a pause
in it better than its sound does (docs/decisions/0008). The closing punctuation is left out of what is
read: whether it comes next is the question, and the cache of what comes before it serves either way.
"""

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Callable, Sequence

import httpx

from pipeline.errors import LanguageModelError
from pipeline.events import Message, Prompt
from pipeline.llm.dialects import llama_cpp
from pipeline.llm.route import Route

_log = logging.getLogger(__name__)

_TIMEOUT = 1.0
"""Seconds; later the answer is of no use to anybody."""

_PLACE = "\N{OBJECT REPLACEMENT CHARACTER}turn\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands where the turn goes while a template is rendered."""

_CLOSING = re.compile(r"[\s.,;:?!…–—-]+$")


class TurnReader:
    """One conversation's; the engine must be llama.cpp's server."""

    def __init__(self, route: Callable[[], Route], http: httpx.AsyncClient) -> None:
        self._route = route
        self._http = http
        self._rendered: tuple[str, str] | None = None
        """Digest of the messages before the turn, and how the engine's template writes them."""

    async def read(self, prompt: Prompt) -> float | None:
        """Probability that a sentence ends after the prompt's last message; None when it is not to be had."""
        *before, turn = prompt.messages
        words = _CLOSING.sub("", turn.text)
        if not words:
            return None
        try:
            async with asyncio.timeout(_TIMEOUT):
                route = self._route()
                opening = await self._opening(route, [*before, Message(turn.role, _PLACE)])
                return await llama_cpp.sentence_end(self._http, route, opening + words)
        except (LanguageModelError, httpx.HTTPError, TimeoutError, LookupError, ValueError) as error:
            _log.debug("a turn could not be read ahead: %r", error)
            return None

    async def _opening(self, route: Route, messages: Sequence[Message]) -> str:
        written = json.dumps([[message.role.value, message.text] for message in messages])
        digest = hashlib.sha256(written.encode()).hexdigest()
        if self._rendered is None or self._rendered[0] != digest:
            rendered = await llama_cpp.render(self._http, route.endpoint, messages)
            self._rendered = digest, rendered[: rendered.index(_PLACE)]
        return self._rendered[1]
