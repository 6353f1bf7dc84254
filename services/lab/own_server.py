"""A server of our own for a synthetic user to call, in a process of its own."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from pipeline.errors import VisavisError
from services import own_module
from services.config.sources import DELIMITER, PREFIX


class ServerStartError(VisavisError):
    """The server did not come up; its own words say why."""

    code = "server_start"


@asynccontextmanager
async def own_server(
    config_file: Path | None, overrides: Mapping[str, object] | None = None
) -> AsyncIterator[str]:
    """A server on a free port; it ends with us, however we end. Yields its address.

    `overrides` are settings by dotted key, {"turn_taking.patience.unsure_ms": 400}. Raises ServerStartError.
    """
    options = ["--config", str(config_file)] if config_file else []
    command = own_module.command("services.cli", "serve", "--port", "0", "--with-parent", *options)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **_variables(overrides or {})},
        start_new_session=True,  # Ctrl-C ends the call first; the server follows when its pipe closes
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdin is not None
    words: list[str] = []
    reading = asyncio.create_task(_keep(process.stderr, words))
    try:
        ready = (await process.stdout.readline()).decode().strip()
        if not ready:
            await process.wait()
            await reading
            raise ServerStartError("the server did not start:\n" + "\n".join(words[-10:]))
        yield ready.rsplit(" ", 1)[1]
    finally:
        process.stdin.close()
        await process.wait()
        await reading


def _variables(overrides: Mapping[str, object]) -> dict[str, str]:
    """Settings as `services.config` reads them from the environment."""
    return {
        PREFIX + key.upper().replace(".", DELIMITER): value if isinstance(value, str) else json.dumps(value)
        for key, value in overrides.items()
    }


async def _keep(stream: asyncio.StreamReader, words: list[str]) -> None:
    async for line in stream:
        words.append(line.decode(errors="replace").rstrip())
        del words[:-200]
