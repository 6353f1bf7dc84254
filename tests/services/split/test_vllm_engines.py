"""What vLLM tells about itself, against what it really answers (0.32)."""

import json
from dataclasses import replace

import httpx
import pytest

from pipeline.errors import LanguageModelError
from pipeline.llm.contract import Phase
from pipeline.llm.contract_check import mismatches
from pipeline.llm.route import Endpoint
from services.config import contracts
from services.split.vllm_engines import Declared, VllmEngine

METRICS = """# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="32",cache_dtype="auto",engine="0",num_gpu_blocks="728"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="smol"} 0.0
"""

ENGINE = VllmEngine(Phase.PREFILL, Endpoint("http://p:8100"), "smol", Declared("a" * 64, "bfloat16"))


class Server:
    def __init__(self) -> None:
        self.metrics, self.version, self.context = METRICS, "0.32.0", 2048

    def __call__(self, request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/metrics":
                return httpx.Response(200, text=self.metrics)
            case "/version":
                return httpx.Response(200, json={"version": self.version})
            case "/v1/models":
                models = [{"id": "smol", "root": "/m/smol", "max_model_len": self.context}]
                return httpx.Response(200, json={"data": models})
            case "/tokenize":
                asked = json.loads(request.content)
                return httpx.Response(200, json={"tokens": [1, 2, 3] if "prompt" in asked else [9, 1, 2, 3]})
        return httpx.Response(404)


def http(server: Server) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(server))


async def test_what_is_probed_and_what_is_declared() -> None:
    async with http(Server()) as client:
        told = await ENGINE.attestation(client)
        assert (await ENGINE.capacity(client)).total == 728
    release = told.release
    assert (release.model.runtime, release.model.precision) == ("vllm 0.32.0", "bfloat16")
    assert (release.kv.block, release.kv.datatype, release.kv.context) == (32, "auto", 2048)
    assert release.model.tokenizer != release.model.template
    assert "kv.block" in told.probed
    assert "model.weights" not in told.probed


async def test_engines_of_two_builds_or_contexts_are_refused() -> None:
    for field, change in (("model.runtime", {"version": "0.33.0"}), ("kv.context", {"context": 4096})):
        one, other = Server(), Server()
        vars(other).update(change)
        async with http(one) as first, http(other) as second:
            decode = replace(ENGINE, phase=Phase.DECODE)
            told = [await ENGINE.attestation(first), await decode.attestation(second)]
        found = mismatches(contracts.load(contracts.VLLM_NIXL), told)
        assert [each.field for each in found] == [field]


async def test_another_server_is_no_vllm() -> None:
    server = Server()
    server.metrics = "llamacpp:tokens 1\n"
    async with http(server) as client:
        with pytest.raises(LanguageModelError, match="has no vllm:cache_config_info"):
            await ENGINE.attestation(client)


async def test_a_model_it_does_not_serve() -> None:
    async with http(Server()) as client:
        with pytest.raises(LanguageModelError, match="serves no model other; it serves smol"):
            await replace(ENGINE, model="other").attestation(client)
