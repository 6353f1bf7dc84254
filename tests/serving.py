"""A real `visavis serve` for tests: a process of its own on a free port, with the real models."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

VISAVIS = Path(sys.executable).with_name("visavis")

READY = "Visavis is ready at "

START_LIMIT_S = 300
"""The first start on a machine prepares models, which takes a minute or two."""


class ServeError(AssertionError):
    """The server did not come up; the message ends with what it printed."""


@dataclass(frozen=True)
class Served:
    """A server that is ready. `process` may be killed; `log` is its standard error."""

    url: str
    process: subprocess.Popen[str]
    log: Path


@contextlib.contextmanager
def serving(overrides: Mapping[str, object] | None = None, *arguments: str) -> Iterator[Served]:
    """Runs `visavis serve` with settings by dotted key, and more arguments. Raises ServeError."""
    environment = os.environ | {_variable(key): _value(value) for key, value in (overrides or {}).items()}
    command = [str(VISAVIS), "serve", "--port", "0", *arguments]
    with tempfile.TemporaryDirectory(prefix="visavis-serving-") as folder:
        log = Path(folder, "stderr.txt")
        with (
            log.open("w") as errors,
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            try:
                yield Served(_wait_until_ready(process, log), process, log)
            finally:
                _stop(process)


def _wait_until_ready(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    limit = threading.Timer(START_LIMIT_S, process.kill)
    limit.start()
    try:
        line = process.stdout.readline().strip()
    finally:
        limit.cancel()
    if not line.startswith(READY):
        raise ServeError(f"visavis serve said {line!r}; standard error ended\n{log.read_text()[-4000:]}")
    url = line.removeprefix(READY)
    health = httpx.get(f"{url}/healthz", verify=False)
    if health.status_code != 200:
        raise ServeError(f"/healthz said {health.status_code} {health.text}")
    return url


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        raise ServeError("visavis serve did not end within 15 s of SIGTERM") from None


def _variable(key: str) -> str:
    return "VISAVIS_" + key.upper().replace(".", "__")


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
