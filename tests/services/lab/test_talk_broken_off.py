"""`talk` when the call does not go to its end, against a server that does what the test says."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from pipeline.errors import BadInputError
from pipeline.timeline.record import empty_record
from services.lab import talk
from services.lab.synthetic_user import CallError
from tests.browser.fake_server import FakeServer, FakeSession, fake_server
from tests.speech import write_wav


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with fake_server() as server:
        yield server


def question(folder: Path, seconds: float) -> Path:
    times = np.arange(round(seconds * 48_000)) / 48_000
    return write_wav(folder / "q.wav", (8000 * np.sin(2 * np.pi * 440 * times)).astype(np.int16))


async def talking(server: FakeServer, file: Path, out: Path) -> tuple["asyncio.Task[int]", FakeSession]:
    task = asyncio.create_task(talk.run(None, [file], server.url, out, False))
    return task, await server.session()


def left_behind(out: Path) -> list[dict[str, Any]]:
    """The records; that the other files are there and can be read is checked."""
    with av.open(str(out / "reply.wav")) as sound:
        assert sound.streams.audio[0].rate == 48_000
    assert (out / "captions.vtt").read_text("utf-8").startswith("WEBVTT")
    records: list[dict[str, Any]] = json.loads((out / "turns.json").read_text("utf-8"))
    return records


async def test_a_call_that_ends_in_mid_question(server: FakeServer, tmp_path: Path) -> None:
    task, session = await talking(server, question(tmp_path, 30), tmp_path / "out")
    session.state(mood="idle")
    await session.close()
    async with asyncio.timeout(20):
        with pytest.raises(CallError, match="mid-question"):
            await task
    (record,) = left_behind(tmp_path / "out")
    assert record["failed"] == "no_reply"
    assert record["total_ms"] is None


async def test_an_agent_that_never_comes_to_an_end(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "QUIET_TIMEOUT", 0.5)
    task, session = await talking(server, question(tmp_path, 1), tmp_path / "out")
    session.send("server-message", {"type": "visavis.state", "user": "silent", "agent": "speaking"})
    async with asyncio.timeout(20):
        with pytest.raises(CallError, match="still not done"):
            await task
    assert left_behind(tmp_path / "out") == []


async def test_a_failed_turn_is_told_with_its_reason(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task, session = await talking(server, question(tmp_path, 1), tmp_path / "out")
    wait_for_the_answer = talk._until_answered

    async def failing(*arguments: Any) -> bool:
        session.send("error", {"error": "The language model did not answer.", "fatal": False})
        session.end_reply(**{**empty_record(), "failed": "llm_failed"})
        return await wait_for_the_answer(*arguments)

    monkeypatch.setattr(talk, "_until_answered", failing)
    session.state(mood="idle")
    async with asyncio.timeout(20):
        assert await task == 1
    words = " ".join(capsys.readouterr().err.split())
    assert "llm_failed: The language model did not answer." in words
    assert words.count("visavis doctor") == 1


@pytest.mark.parametrize(
    "url", ["localhost:8080", "127.0.0.1:8080", "ftp://localhost", "http://", "http://a:b"]
)
async def test_an_address_that_is_not_http_is_bad_input(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="http://host:port"):
        await talk.run(None, [question(tmp_path, 1)], url, tmp_path / "out", False)
    assert not (tmp_path / "out").exists()
