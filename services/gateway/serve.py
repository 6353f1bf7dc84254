"""`visavis serve`: the whole stack and its page, until a signal ends it."""

import asyncio
import gc
import logging
import signal
import socket
import sys
from pathlib import Path

import click
import uvicorn

from pipeline.clock import MonotonicClock
from pipeline.errors import ConfigError
from pipeline.webrtc.tuning.loopback import offer_loopback
from services import slo, tls
from services.config import Config
from services.gateway.app import make_app
from services.gateway.sessions import Sessions
from services.stack import open_stack
from services.telemetry.prometheus import Prometheus
from services.telemetry.telemetry import open_telemetry

SWITCH_INTERVAL = 0.0005
"""Seconds for which a thread may keep the interpreter's lock while another wants it. Drawing, recognising and
speaking let go of it for each of many short native calls, and each time waited for the loop, up to Python's
usual 5 ms. Four callers, 32 turns each: median 859 and p90 1,220 ms to first audio, 6 freezes; with this 727,
874 and none."""


async def run(config: Config, *, with_parent: bool = False) -> None:
    """Serve until SIGINT or SIGTERM, or, `with_parent`, until standard input ends.

    Prints one line to standard output when it is ready, `Visavis is ready at URL`; progress goes to
    standard error. Raises ConfigError when the port is taken, the certificate and key are no pair or the
    file of limits is wrong, and what `open_stack` raises.
    """
    _log_to_stderr(config.telemetry.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL)
    _check_certificate(config.server.tls_cert, config.server.tls_key)
    limits = slo.load(config.telemetry.slo)
    offer_loopback()
    clock = MonotonicClock()
    listening = _listen(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        # While models are being loaded nothing can interrupt that; whoever waits should know.
        if not stop.is_set():
            click.echo("… stopping", err=True)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    watched = (
        (await loop.connect_read_pipe(lambda: _UntilInputEnds(stop), sys.stdin))[0] if with_parent else None
    )
    with listening:
        async with (
            open_stack(config, clock, lambda text: click.echo(f"… {text}", err=True)) as stack,
            open_telemetry(config, limits, stack.loop_lag) as telemetry,
            Sessions(stack, telemetry) as sessions,
        ):
            # What was loaded stays for good. Were it the garbage collector's, its full passes would hold the
            # loop for long, and be rare: what calls leave would wait for them.
            gc.collect()
            gc.freeze()
            server = _server(config, sessions, telemetry.prometheus)
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            if not stop.is_set():
                click.echo(f"Visavis is ready at {_url(config, listening)}")
                click.echo("Open it in a browser. Ctrl-C ends it.", err=True)
            await asyncio.wait(
                [serving, ending := asyncio.create_task(stop.wait())], return_when="FIRST_COMPLETED"
            )
            ending.cancel()
            server.should_exit = True
            await serving
    if watched is not None:
        watched.close()


def _log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    # Here too: bm25s sets its own logger to DEBUG when it is imported, which is later than this.
    handler.setLevel(level)
    logging.basicConfig(
        level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[handler]
    )
    for chatty in ("httpx", "gguf", "aioice", "aiortc"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _server(config: Config, sessions: Sessions, prometheus: Prometheus) -> uvicorn.Server:
    """A server that can take connections as soon as it is told to."""
    settings = uvicorn.Config(
        make_app(config, sessions, prometheus),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ssl_certfile=config.server.tls_cert,
        ssl_keyfile=config.server.tls_key,
        timeout_graceful_shutdown=2,
    )
    settings.load()  # here, where a certificate that changed meanwhile fails before "ready" is said
    return uvicorn.Server(settings)


def _check_certificate(certificate: Path | None, key: Path | None) -> None:
    if certificate is None or key is None:
        return
    if (fault := tls.fault(certificate, key)) is not None:
        raise ConfigError(f"server.tls_cert, server.tls_key: {fault}; {tls.REMEDY}")


def _listen(config: Config) -> socket.socket:
    server = config.server
    try:
        return socket.create_server((server.host, server.port))
    except OSError as error:
        raise ConfigError(
            f"server.port: {server.port} on {server.host} cannot be used ({error.strerror}); "
            "is another server running? Choose another one with --port, or 0 for a free one"
        ) from error


def _url(config: Config, listening: socket.socket) -> str:
    scheme = "https" if config.server.tls_cert else "http"
    host = f"[{config.server.host}]" if ":" in config.server.host else config.server.host
    return f"{scheme}://{host}:{listening.getsockname()[1]}"


class _UntilInputEnds(asyncio.Protocol):
    """The end of a pipe is the sign that a parent is gone, even by kill -9."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop.set()
