"""What a process loads once and shares, with the real models."""

import asyncio
import threading
from pathlib import Path

import pytest

from pipeline.clock import MonotonicClock
from pipeline.errors import ConfigError
from services.config import load
from services.stack import open_stack

pytestmark = pytest.mark.models


async def test_a_language_without_rules_is_told_before_anything_is_loaded() -> None:
    told: list[str] = []
    with pytest.raises(ConfigError, match=r"asr\.language.*'de'"):
        async with open_stack(load(None, {"asr.language": "de"}), MonotonicClock(), told.append):
            pass
    assert told == []


async def test_pictures_do_not_wait_for_the_ranking_of_evidence(tmp_path: Path) -> None:
    (tmp_path / "prices.md").write_text("A ticket costs four crowns.")
    settings = {
        "llm.kind": "openai",
        "llm.openai.base_url": "http://127.0.0.1:9/v1",
        "llm.openai.model": "any",
        "llm.evidence.enabled": True,
        "llm.evidence.folder": str(tmp_path),
    }
    drawing = threading.Event()
    async with open_stack(load(None, settings), MonotonicClock(), lambda text: None) as stack:
        stack._render.submit(drawing.wait)
        assert stack._evidence is not None
        try:
            async with asyncio.timeout(20):
                found = await stack._evidence.find(
                    "What does a ticket cost?", tenant="public", role="visitor"
                )
        finally:
            drawing.set()
    assert [each.source for each in found] == ["prices.md"]
