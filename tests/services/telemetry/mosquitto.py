"""A real broker for tests, someone who listens to it, and a way to it that can be cut."""

import asyncio
import contextlib
import getpass
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

PATIENCE = 30
"""Seconds after which something that should come is given up."""


def program(name: str) -> str:
    """Debian puts it where only root looks for programs."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install mosquitto")
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
        return port


@contextlib.contextmanager
def mosquitto(folder: Path, *settings: str, port: int | None = None) -> Iterator[int]:
    """Runs a broker on a port, with these lines of its settings beside the usual ones; gives the port."""
    port = port or free_port()
    anonymous = [] if any("allow_anonymous" in line for line in settings) else ["allow_anonymous true"]
    lines = [f"listener {port} 127.0.0.1", f"user {getpass.getuser()}", *anonymous, *settings]
    file = folder / f"mosquitto-{port}.conf"
    file.write_text("\n".join(lines) + "\n")
    command = [program("mosquitto"), "-c", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(PATIENCE, process.kill)
        limit.start()
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "running" in line:
                break
        limit.cancel()
        try:
            assert process.poll() is None, "".join(said)
            yield port
        finally:
            process.kill()


@contextlib.asynccontextmanager
async def listening(port: int, **options: Any) -> AsyncIterator[aiomqtt.Client]:
    """A client that gets everything of ours."""
    async with aiomqtt.Client("127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5, **options) as client:
        await client.subscribe("visavis/#", qos=1)
        yield client


async def told(client: aiomqtt.Client, **expected: Any) -> aiomqtt.Message:
    """The next message whose payload has these fields."""
    async with asyncio.timeout(PATIENCE):
        async for message in client.messages:
            payload = body(message)
            if expected.items() <= payload.items():
                return message
    raise AssertionError("the broker went away")


def body(message: aiomqtt.Message) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(message.payload)
    return payload


class Way:
    """A way to a broker, on a port of its own, that can be closed: all who use it are cut off."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.port = free_port()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, back}
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(_copy(reader, back), _copy(there, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()
