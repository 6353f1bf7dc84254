"""Real vLLM engines on this machine's processor, each on a core of its own."""

import asyncio
import json
import os
import signal
import socket
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from pipeline.llm.contract import Phase
from pipeline.llm.route import Endpoint
from services.split.vllm_engines import Declared, VllmEngine

ROOT = Path(__file__).parents[2]

PYTHON = ROOT / ".venv-engines" / "bin" / "python"

MODEL_FOLDER = ROOT / ".venv-engines" / "smollm2"

MODEL = "smollm2"

READY = 240.0
"""Seconds within which an engine serves."""


@dataclass
class VllmServer:
    """One engine, as a process group: vLLM's core is a process of its own."""

    engine: VllmEngine
    process: Process
    log: Path

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@asynccontextmanager
async def serving(phase: Phase, core: int, folder: Path, connector: str = "NixlConnector") -> AsyncIterator[VllmServer]:
    """An engine of this phase, once it serves. Raises RuntimeError with the end of its log."""
    assert PYTHON.is_file(), "make test-engines installs the engines first"
    port, side = free_port(), free_port()
    role = "kv_producer" if phase is Phase.PREFILL else "kv_consumer"
    transfer = {
        "kv_connector": connector,
        "kv_role": role,
        "kv_buffer_device": "cpu",
        "kv_load_failure_policy": "fail",
    }
    command = [
        *(str(PYTHON), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(MODEL_FOLDER), "--served-model-name", MODEL),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--dtype", "float32", "--block-size", "32", "--max-model-len", "2048", "--max-num-seqs", "8"),
        *("--enforce-eager", "--enable-prompt-tokens-details"),
        *("--kv-transfer-config", json.dumps(transfer)),
    ]
    environment = {
        **os.environ,
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": str(core),
        "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
        "VLLM_NIXL_SIDE_CHANNEL_PORT": str(side),
        "VLLM_NO_USAGE_STATS": "1",
        "UCX_TLS": "tcp,sm,self",
        "UCX_NET_DEVICES": "lo",
        "HF_HUB_OFFLINE": "1",
    }
    log = folder / f"{phase}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdin=DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        engine = VllmEngine(phase, Endpoint(f"http://127.0.0.1:{port}"), MODEL, Declared(precision="float32"))
        server = VllmServer(engine, process, log)
        try:
            await _ready(server)
            yield server
        finally:
            server.kill()
            await process.wait()


@asynccontextmanager
async def pair(folder: Path) -> AsyncIterator[tuple[VllmServer, VllmServer]]:
    """A prefill and a decode engine."""
    cores = sorted(os.sched_getaffinity(0))
    async with AsyncExitStack() as scope:
        ways = ((Phase.PREFILL, cores[0]), (Phase.DECODE, cores[-1]))
        starting = [scope.enter_async_context(serving(phase, core, folder)) for phase, core in ways]
        prefill, decode = [await each for each in starting]
        yield prefill, decode


async def _ready(server: VllmServer) -> None:
    """A server of somebody else's tells nobody when it is ready; it has to be asked."""
    async with httpx.AsyncClient() as http, asyncio.timeout(READY):
        while True:
            if server.process.returncode is not None:
                raise RuntimeError(f"vLLM ended: {server.log.read_text(errors='replace')[-3000:]}")
            with suppress(httpx.HTTPError):
                if (await http.get(server.engine.endpoint.at("/health"))).status_code == 200:
                    return
            await asyncio.sleep(0.5)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
