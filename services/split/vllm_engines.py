"""Two vLLM engines that somebody else runs: what they are, as far as they tell, and how much they hold.

GET /version {version} · GET /v1/models {id, max_model_len} · POST /tokenize {tokens}, of a text and of a
chat · GET /metrics, in which `vllm:cache_config_info` has every setting of the KV cache for a label. Neither
the weights nor the datatype of the model are told (vLLM 0.32): these are what the operator declares.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

import httpx

from pipeline.errors import LanguageModelError
from pipeline.llm.contract import Attestation, KvFormat, ModelIdentity, Phase, Release
from pipeline.llm.pool.ledger import Blocks
from pipeline.llm.route import Endpoint
from services.engine.identity import PROBE

_CACHE = re.compile(r"^vllm:cache_config_info\{(.*)\} 1", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

_PROBED = frozenset(
    {
        *("model.tokenizer", "model.template", "model.runtime"),
        *("kv.block", "kv.datatype", "kv.context"),
    }
)

TIMEOUT = 10.0
"""Seconds for each question."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What an engine does not tell about itself."""

    weights: str | None = None
    """SHA-256 of the weights."""
    precision: str | None = None


@dataclass(frozen=True, slots=True)
class VllmEngine:
    """One of the two."""

    phase: Phase
    endpoint: Endpoint
    model: str
    declared: Declared

    @property
    def name(self) -> str:
        return f"{self.phase} at {self.endpoint.url}"

    async def attestation(self, http: httpx.AsyncClient) -> Attestation:
        """Raises LanguageModelError when it does not answer, or not as vLLM does."""
        cache = await self._cache(http)
        version = (await self._ask(http, "/version"))["version"]
        models = (await self._ask(http, "/v1/models"))["data"]
        mine = next((each for each in models if each["id"] == self.model), None)
        if mine is None:
            served = ", ".join(each["id"] for each in models)
            raise LanguageModelError(f"{self.name} serves no model {self.model}; it serves {served}")
        text = await self._tokens(http, {"prompt": PROBE})
        chat = await self._tokens(http, {"messages": [{"role": "user", "content": PROBE}]})
        model = ModelIdentity(
            weights=self.declared.weights,
            tokenizer=text,
            template=chat,
            adapter=None,
            precision=self.declared.precision,
            runtime=f"vllm {version}",
        )
        kv = KvFormat(
            layout="vllm blocks",
            block=int(cache["block_size"]),
            datatype=cache.get("cache_dtype"),
            compression=None,
            context=mine.get("max_model_len"),
            slots=None,
        )
        return Attestation(self.name, self.phase, str(self.phase), Release(model, kv), _PROBED)

    async def capacity(self, http: httpx.AsyncClient) -> Blocks:
        """Of its KV cache. Raises LanguageModelError."""
        cache = await self._cache(http)
        return Blocks(int(cache["num_gpu_blocks"]), int(cache["block_size"]))

    async def _cache(self, http: httpx.AsyncClient) -> dict[str, str]:
        try:
            answer = await http.get(self.endpoint.at("/metrics"), timeout=TIMEOUT)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise LanguageModelError(f"{self.name} does not answer; is it running? ({error!r})") from error
        found = _CACHE.search(answer.text)
        labels = dict(_LABEL.findall(found[1])) if found else {}
        if "block_size" not in labels or "num_gpu_blocks" not in labels:
            raise LanguageModelError(
                f"{self.name}: /metrics has no vllm:cache_config_info with block_size and num_gpu_blocks; "
                "expected vLLM 0.32 or later"
            )
        return labels

    async def _tokens(self, http: httpx.AsyncClient, asked: dict[str, object]) -> str:
        """Digest of how it reads something."""
        tokens = (await self._ask(http, "/tokenize", {"model": self.model, **asked}))["tokens"]
        return hashlib.sha256(json.dumps(tokens).encode()).hexdigest()

    async def _ask(
        self, http: httpx.AsyncClient, path: str, body: dict[str, object] | None = None
    ) -> dict[str, Any]:
        try:
            answer = await http.request(
                "GET" if body is None else "POST",
                self.endpoint.at(path),
                json=body,
                headers=self.endpoint.headers,
                timeout=TIMEOUT,
            )
            answer.raise_for_status()
            return dict(answer.json())
        except (httpx.HTTPError, ValueError) as error:
            raise LanguageModelError(f"{self.name}{path}: {error!r}") from error
