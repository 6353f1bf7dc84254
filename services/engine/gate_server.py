"""Serves a worker's gate, on a loop and a loopback port of its own."""

import asyncio
import os
import socket
import traceback
from collections.abc import Callable

import httpx
import uvicorn

from pipeline.clock import MonotonicClock
from services.engine.identity import attestation
from services.engine.kv_gate import KvGate, make_app
from services.engine.messages import WorkerSettings
from services.engine.reservations import Reservations

_ANSWER = 30.0
"""Seconds that llama.cpp may take for a slot: it waits for the slot to be idle first."""

_SEND = 10.0
"""Seconds without progress after which another worker counts as gone."""


def serve_gate(engine_url: str, settings: WorkerSettings, tell: Callable[[str], None]) -> None:
    """Until the process ends, or by a fault of the gate ends it: its parent starts another. `tell` is given
    the gate's address once it serves."""
    try:
        asyncio.run(_serve(engine_url, settings, tell))
    finally:
        traceback.print_exc()
        os._exit(1)


async def _serve(engine_url: str, settings: WorkerSettings, tell: Callable[[str], None]) -> None:
    clock = MonotonicClock()
    key = {"Authorization": f"Bearer {settings.api_key}"}
    async with (
        httpx.AsyncClient(base_url=engine_url, headers=key, timeout=_ANSWER, trust_env=False) as engine,
        httpx.AsyncClient(timeout=_SEND, trust_env=False) as network,
        asyncio.TaskGroup() as tasks,
    ):
        identity = await attestation(engine, settings)
        reservations = Reservations(settings.slots, clock, settings.lease)
        gate = KvGate(identity, engine, network, reservations, clock, settings.lease)
        tasks.create_task(gate.reap())
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(gate, settings.api_key),
                log_level="warning",
                access_log=False,
                lifespan="off",
            )
        )
        tell(f"http://127.0.0.1:{listening.getsockname()[1]}")
        await server.serve(sockets=[listening])
