"""What is seen of a server: by its processes and by its metrics."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pipeline.clock import VirtualClock
from pipeline.timeline.loop_lag import LoopLag
from services.lab.soak.findings import Sample
from services.lab.soak.resources import Observer, loop_lag_ms

METRICS = """# HELP visavis_loop_lag_seconds How late the event loop was.
# TYPE visavis_loop_lag_seconds gauge
visavis_loop_lag_seconds 0.0123
visavis_loop_lag_seconds_other 5
visavis_sessions 2
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (METRICS, 12.3),
        ('visavis_loop_lag_seconds{node="a"} 0.002\nvisavis_loop_lag_seconds{node="b"} 1e-1\n', 100.0),
        ("visavis_loop_lag_seconds NaN\n", None),
        ("visavis_sessions 2\n", None),
        ("", None),
    ],
)
def test_loop_lag_is_read_from_prometheus_text(text: str, expected: float | None) -> None:
    assert loop_lag_ms(text) == expected


async def metrics(request: Request) -> Response:
    return PlainTextResponse(METRICS)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    app = Starlette(routes=[Route("/metrics", metrics)])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listening]))
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            server.should_exit = True


async def watched(url: str, count: int) -> list[Sample]:
    clock, lag = VirtualClock(100.0), LoopLag(VirtualClock())
    lag.note(0.0, 0.05)
    samples: list[Sample] = []
    enough = asyncio.Event()

    def take(sample: Sample) -> None:
        samples.append(sample)
        if len(samples) == count:
            enough.set()

    watching = asyncio.create_task(Observer(url, clock, 90.0, lag).watch(take))
    while not enough.is_set():
        await clock.advance(0.5)
    watching.cancel()
    await asyncio.wait([watching])
    return samples


async def test_a_server_of_this_machine_is_seen(url: str) -> None:
    first, second = await watched(url, 2)
    assert first.at_s >= 10
    assert second.at_s >= first.at_s + 2
    assert first.rss_mb > 10
    assert first.threads >= 1
    assert first.descriptors >= 1
    assert first.server_cores is None, "nothing to compare with yet"
    assert second.server_cores is not None
    assert first.loop_lag_ms == 12.3
    assert first.client_loop_lag_ms == 50.0
    assert second.client_loop_lag_ms == 0.0


async def test_a_server_that_cannot_be_seen_gives_nulls() -> None:
    (sample,) = await watched("http://127.0.0.1:9", 1)
    assert (sample.rss_mb, sample.threads, sample.loop_lag_ms) == (None, None, None)
    assert sample.client_loop_lag_ms == 50.0
