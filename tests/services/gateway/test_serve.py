"""The real server, as a process: isolation, recovery, and what is left when calls are over."""

import asyncio
import gc
import json
import signal
import socket
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from pipeline.clock import MonotonicClock
from services import slo
from services.config import load
from services.gateway import serve
from services.gateway.app import make_app
from services.gateway.sessions import Sessions
from services.lab.synthetic_user import CallError, SyntheticUser, Told, calling
from services.stack import open_stack
from services.telemetry.telemetry import open_telemetry
from tests.serving import VISAVIS, serving

pytestmark = [pytest.mark.models, pytest.mark.engine]


async def ask(user: SyntheticUser, text: str) -> dict[str, object]:
    """Type, and wait for the turn's record."""
    since = len(user.told)
    user.type(text)
    async with asyncio.timeout(60):
        told = await user.until(lambda message: message.type == "visavis.turn", since=since)
    return dict(told.data["record"])


async def until_idle(user: SyntheticUser) -> None:
    def idle(message: Told) -> bool:
        return message.type == "visavis.state" and message.data["agent"] == "idle"

    async with asyncio.timeout(60):
        await user.until(idle)


@asynccontextmanager
async def listening(app: Starlette) -> AsyncIterator[str]:
    """The address at which an app of this process is served."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        serving_it = asyncio.create_task(server.serve(sockets=[bound]))
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving_it


class RecordingModel:
    """An OpenAI-compatible endpoint that writes down the prompts it is sent."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.app = Starlette(routes=[Route("/v1/chat/completions", self._complete, methods=["POST"])])

    async def _complete(self, request: Request) -> StreamingResponse:
        self.prompts.append(json.dumps((await request.json())["messages"]))

        async def events() -> AsyncIterator[str]:
            for piece in ("I will ", "remember ", "that."):
                yield f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n"
            yield 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")


async def test_a_word_told_in_one_call_is_in_no_other() -> None:
    clock, model = MonotonicClock(), RecordingModel()
    async with AsyncExitStack() as scope:
        llm = await scope.enter_async_context(listening(model.app))
        overrides = {"llm.kind": "openai", "llm.openai.base_url": f"{llm}/v1", "llm.openai.model": "any"}
        served = await asyncio.to_thread(scope.enter_context, serving(overrides))
        one = await scope.enter_async_context(calling(served.url, clock))
        other = await scope.enter_async_context(calling(served.url, clock))
        await asyncio.gather(
            ask(one, "My secret word is marzipan."), ask(other, "My secret word is periwinkle.")
        )
        await asyncio.gather(ask(one, "First question."), ask(other, "Second question."))
        await asyncio.gather(ask(one, "Third question."), ask(other, "Fourth question."))
    for question, own, foreign in (
        ("First question.", "marzipan", "periwinkle"),
        ("Third question.", "marzipan", "periwinkle"),
        ("Second question.", "periwinkle", "marzipan"),
        ("Fourth question.", "periwinkle", "marzipan"),
    ):
        asked = [prompt for prompt in model.prompts if json.loads(prompt)[-1]["content"] == question]
        assert asked, question
        assert all(own in prompt and foreign not in prompt for prompt in asked)


async def test_an_engine_killed_in_mid_reply_is_apologised_for_and_comes_back() -> None:
    clock = MonotonicClock()
    async with AsyncExitStack() as scope:
        served = await asyncio.to_thread(scope.enter_context, serving())
        user = await scope.enter_async_context(calling(served.url, clock))
        await until_idle(user)
        since = len(user.told)
        user.type("Tell me a long story about a dog and a cat.")
        await user.until(lambda message: message.type == "bot-llm-text", since=since)
        (engine,) = psutil.Process(served.process.pid).children()
        engine.kill()
        async with asyncio.timeout(60):
            turn = await user.until(lambda message: message.type == "visavis.turn", since=since)
        assert turn.data["record"]["failed"] == "llm_failed"
        words = [m.data["text"] for m in user.told[since:] if m.type == "bot-tts-text"]
        assert " ".join(words).endswith("Could you say that again?")
        heard = np.concatenate([packet.pcm for packet in user.sound.heard[-100:]])
        assert np.abs(heard.astype(int)).max() > 1000, "the apology is spoken"
        async with asyncio.timeout(60), httpx.AsyncClient() as http:
            while (await http.get(f"{served.url}/healthz")).status_code != 200:
                pass
        record = await ask(user, "What is the capital of France?")
        assert record["failed"] is None
        assert record["reply_text"]


async def test_the_server_full_is_said_and_a_place_comes_free() -> None:
    clock = MonotonicClock()
    async with AsyncExitStack() as scope:
        served = await asyncio.to_thread(scope.enter_context, serving({"server.max_sessions": 1}))
        async with calling(served.url, clock):
            with pytest.raises(CallError, match=r"503.*places are taken"):
                async with calling(served.url, clock):
                    pass
        async with asyncio.timeout(30), httpx.AsyncClient() as http:
            while (await http.get(f"{served.url}/healthz")).status_code != 200:
                pass
        async with calling(served.url, clock) as user:
            await until_idle(user)


def test_a_taken_port_is_said_plainly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = subprocess.run(
            [VISAVIS, "serve", "--port", port], capture_output=True, text=True, timeout=60, check=False
        )
    assert result.returncode == 2
    assert f"server.port: {port} on 127.0.0.1 cannot be used" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_certificate_that_cannot_be_used_is_told_before_anything_is_loaded(tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("hello")
    options = ["--port", "0", "--tls-cert", text, "--tls-key", text]
    result = subprocess.run(
        [VISAVIS, "serve", *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 2
    assert "server.tls_cert, server.tls_key" in result.stderr
    assert str(text) in result.stderr
    assert "…" not in result.stderr, "nothing was loaded"
    assert result.stdout == ""


def test_a_certificate_that_broke_since_is_found_before_the_server_is_ready(tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("hello")
    config = load(None, {"server.tls_cert": text, "server.tls_key": text})
    with pytest.raises(ssl.SSLError):
        serve._server(config, object(), object())  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_server_ends_its_engine_ends_too(number: signal.Signals) -> None:
    with serving() as served:
        engine = psutil.Process(served.process.pid).children()
        assert len(engine) == 1
        served.process.send_signal(number)
        served.process.wait(timeout=30)
        _, alive = psutil.wait_procs(engine, timeout=30)
        assert alive == []


@pytest.mark.slow
async def test_fifty_calls_leave_nothing_behind() -> None:
    """Memory slope over cycles 20 to 50 below 0.2 MB a cycle; the rest equal, by name."""
    clock = MonotonicClock()
    memory: list[float] = []
    async with AsyncExitStack() as scope:
        # The same words every time: a longer clause than any before makes onnxruntime's arena grow.
        steady = {"llm.sampling.temperature": 0.0, "tts.noise_scale": 0.0, "tts.noise_w_scale": 0.0}
        config = load(None, steady)
        stack = await scope.enter_async_context(open_stack(config, clock, lambda text: None))
        telemetry = await scope.enter_async_context(open_telemetry(config, slo.load(), stack.loop_lag))
        sessions = await scope.enter_async_context(Sessions(stack, telemetry))
        url = await scope.enter_async_context(listening(make_app(config, sessions, telemetry.prometheus)))

        async def cycle(n: int) -> None:
            async with calling(url, clock) as user:
                if n % 5 == 0:
                    await ask(user, "Hello.")
                else:
                    await user.until(lambda message: message.type == "bot-started-speaking")
            if sessions._tasks:
                await asyncio.wait(sessions._tasks, timeout=30)
            assert len(sessions) == 0
            gc.collect()

        for n in range(20):
            await cycle(n)
        before = census()
        for n in range(20, 50):
            await cycle(n)
            memory.append(psutil.Process().memory_info().rss / 1e6)
        after = census()
    assert after == before
    # Theil and Sen's: a leak grows in every cycle, an arena of onnxruntime's by one step now and then.
    slope = np.median(
        [(b - a) / (j - i) for i, a in enumerate(memory) for j, b in enumerate(memory) if j > i]
    )
    assert slope < 0.2, f"{slope:.2f} MB a cycle: {memory}"


def census() -> dict[str, Counter[str]]:
    """Tasks, threads, descriptors and children of this process, by name."""
    process = psutil.Process()
    return {
        "tasks": Counter(
            getattr(task.get_coro(), "__qualname__", repr(task.get_coro())) for task in asyncio.all_tasks()
        ),
        "threads": Counter(thread.name for thread in threading.enumerate()),
        "descriptors": Counter({"all": process.num_fds()}),
        "children": Counter(child.name() for child in process.children(recursive=True)),
    }
