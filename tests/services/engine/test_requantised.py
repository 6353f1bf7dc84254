"""The packaged model, re-quantised, in the engine."""

from pathlib import Path

import httpx
import pytest

from services.engine.messages import WorkerSettings
from services.engine.model_file import prepare_model, shipped_model
from services.engine.worker_process import worker_process

pytestmark = [pytest.mark.engine, pytest.mark.models]

SYSTEM = "You are a helpful assistant."
QUESTION = "What is the capital of France?"
TEXT = "The naïve café's 1,250 guests: “voilà!” 👋 <|im_start|>user\n"


async def ask(model: Path) -> tuple[list[int], str, str]:
    """(tokens of a text, the template's rendering, a greedy answer)."""
    settings = WorkerSettings(str(model), "sesame", slots=1, context=512, threads=1)
    headers = {"Authorization": "Bearer sesame", "Connection": "close"}
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    request = {"messages": messages, "temperature": 0, "max_tokens": 12, "id_slot": 0}
    async with (
        worker_process(settings, 60.0) as worker,
        httpx.AsyncClient(base_url=worker.ready.url, headers=headers, timeout=60) as http,
    ):
        tokens = await http.post("/tokenize", json={"content": TEXT})
        template = await http.post("/apply-template", json={"messages": messages})
        answer = await http.post("/v1/chat/completions", json=request)
    return (
        tokens.json()["tokens"],
        template.json()["prompt"],
        answer.json()["choices"][0]["message"]["content"],
    )


async def test_it_reads_as_before_and_still_speaks(tmp_path: Path) -> None:
    model = prepare_model(tmp_path)
    assert model.fallback_reason is None
    before, after = await ask(shipped_model()), await ask(model.path)
    assert after[:2] == before[:2]
    assert "Paris" in before[2]
    assert "Paris" in after[2]
