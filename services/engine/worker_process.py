"""One life of the worker process, from start to exit, with no orphan left behind."""

import asyncio
import json
import logging
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import ClassVar

from pipeline.errors import VisavisError
from services import own_module
from services.engine.messages import Ready, WorkerSettings

COMMAND = own_module.command("services.engine.worker")

QUOTED_LINES = 20
"""What an error quotes of the worker's last words."""

LONGEST_LINE = 4096
"""Bytes of one log line that are kept."""

CLOSING = 3.0
"""Seconds the worker gets to leave after its input ended, and again after SIGTERM, before SIGKILL."""

logger = logging.getLogger(__name__)


class EngineError(VisavisError):
    """The worker did not come up; the message quotes the end of its log."""

    code: ClassVar[str] = "engine_failed"


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A worker that serves."""

    ready: Ready
    process: Process

    async def exited(self) -> int:
        """Its exit code, once it has one; -9 for SIGKILL and so on."""
        return await self.process.wait()


@asynccontextmanager
async def worker_process(settings: WorkerSettings, timeout: float) -> AsyncIterator[WorkerProcess]:
    """A worker that is ready; gone when the context ends. Raises EngineError.

    `timeout`: seconds for loading the model and warming up.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            # A signal to our group is ours to act on: the worker ends when its input does.
            start_new_session=True,
        )
    except OSError as error:
        raise EngineError(f"the embedded engine's process cannot be started: {error}") from error
    last_words: deque[str] = deque(maxlen=QUOTED_LINES)
    assert process.stderr is not None
    log = asyncio.create_task(_forward(process.stderr, last_words), name=f"engine-log-{process.pid}")
    try:
        try:
            async with asyncio.timeout(timeout):
                ready = await _greet(process, settings)
        except TimeoutError as error:
            raise EngineError(_told(f"was not ready within {timeout:g} s", last_words)) from error
        if ready is None:
            code = await process.wait()
            await log
            raise EngineError(_told(f"ended with exit code {code} before it was ready", last_words))
        yield WorkerProcess(ready, process)
    finally:
        await _end(process)
        await log


async def _greet(process: Process, settings: WorkerSettings) -> Ready | None:
    """Hand over the settings and wait for the worker's line; None when it ended instead."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(ConnectionError):  # it died before reading: its exit says why
        process.stdin.write(json.dumps(asdict(settings)).encode() + b"\n")
        await process.stdin.drain()
    line = await process.stdout.readline()
    return Ready(**json.loads(line)) if line.endswith(b"\n") else None


async def _forward(stream: asyncio.StreamReader, last_words: deque[str]) -> None:
    """Log what the worker writes. Somebody must read it, or it would stop when the pipe is full."""
    rest = b""
    while piece := await stream.read(1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        rest = rest[:LONGEST_LINE]
        for line in lines:
            text = line[:LONGEST_LINE].decode("utf-8", "replace")
            last_words.append(text)
            # Several lines a request, some in the tone of errors about what is meant: not for INFO.
            logger.debug("llama.cpp: %s", text)


async def _end(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    for force in (process.terminate, process.kill):
        try:
            async with asyncio.timeout(CLOSING):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                force()
        else:
            return
    await process.wait()


def _told(what: str, last_words: deque[str]) -> str:
    said = "\n  ".join(last_words) or "(nothing)"
    return f"the embedded engine {what}; its last words:\n  {said}"
