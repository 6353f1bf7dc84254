"""One run of a benchmark: its options, the server it measures, and what is left behind of it."""

import asyncio
import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from pipeline.clock import MonotonicClock, wall_time
from pipeline.errors import BadInputError
from pipeline.webrtc.tuning.loopback import offer_loopback
from services.config import load
from services.lab import history
from services.lab.machine import ServerProcesses, machine, shares
from services.lab.own_server import own_server
from services.lab.studio.speech import Studio

Row = dict[str, Any]
"""One turn, or one trial, of a benchmark."""


@dataclass(frozen=True, slots=True)
class Options:
    """What every benchmark can be told."""

    url: str | None
    config: Path | None
    overrides: Mapping[str, object]
    out: Path
    history: Path | None
    """None: the run is not kept."""
    seed: int
    recordings: Path


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to. `values` are the single measurements that a comparison needs."""

    results: Mapping[str, Any]
    values: Mapping[str, Sequence[float]]
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Server:
    """A server under measurement."""

    url: str
    processes: ServerProcesses


@dataclass(slots=True)
class Sitting:
    """Handed to a benchmark, which fills `rows` and `notes` as it goes: an early end loses nothing."""

    options: Options
    console: Console
    clock: MonotonicClock = field(default_factory=MonotonicClock)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usage: list[dict[str, Any]] = field(default_factory=list)
    _parts: int = 0

    def rng(self) -> np.random.Generator:
        """A new generator for each part of a run, the same ones for the same seed."""
        self._parts += 1
        return np.random.default_rng((self.options.seed, self._parts))

    def say(self, text: str) -> None:
        """A line of progress."""
        self.console.print(text, markup=False, highlight=False)

    @asynccontextmanager
    async def studio(self) -> AsyncIterator[Studio]:
        """Where speech is made; its files go when it is left."""
        with (
            tempfile.TemporaryDirectory(prefix="visavis-bench-") as folder,
            self.console.status("making speech") as status,
        ):
            studio = Studio(Path(folder), self.options.recordings, self.rng(), status.update)
            if not studio.recordings.is_dir():
                self.notes.append("no recordings of human speech here: synthetic speech only")
            yield studio

    @asynccontextmanager
    async def server(
        self, label: str = "server", overrides: Mapping[str, object] | None = None
    ) -> AsyncIterator[Server]:
        """The server at --url, or one of our own with --set and then `overrides`."""
        async with contextlib.AsyncExitStack() as scope:
            url = self.options.url
            if url is None:
                settings = {**self.options.overrides, **(overrides or {})}
                with self.console.status("starting a server"):
                    url = await scope.enter_async_context(own_server(self.options.config, settings))
            server = Server(url.rstrip("/"), ServerProcesses(url))
            first = server.processes.usage(self.clock.now())
            try:
                yield server
            finally:
                last = server.processes.usage(self.clock.now())
                rss = None if last is None else last.rss_mb
                self.usage.append({"label": label, **shares(first, last), "server_rss_mb": rss})


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A name, what is done, and what is made of it."""

    name: str
    measure: Callable[[Sitting], Awaitable[None]]
    summarise: Callable[[Sitting], Summary]
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Settings this benchmark needs of a server of our own; --set wins over them."""
    own_server: bool = False
    """It starts servers with other settings, so --url is refused."""


def hold(benchmark: Benchmark, options: Options) -> None:
    """Run a benchmark; print its tables, write report.json, add a line to the history.

    Also when Ctrl-C ends it early. Raises BadInputError and ConfigError before anything is started.
    """
    if options.url and benchmark.own_server:
        raise BadInputError(
            f"--url {options.url}: {benchmark.name} changes settings; it starts its own servers"
        )
    settings = {} if options.url else {**benchmark.overrides, **options.overrides}
    digest = None if options.url else _digest(options.config, settings)
    options = replace(options, overrides=settings)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"--out {options.out}: cannot be written to ({error.strerror})") from error
    offer_loopback()
    sitting = Sitting(options, Console(stderr=True))
    before, date, complete = os.getloadavg(), wall_time(), False
    try:
        asyncio.run(_run(benchmark, sitting))
        complete = True
    finally:
        summary = benchmark.summarise(sitting)
        head = {
            "benchmark": benchmark.name,
            **history.commit(),
            "date": date,
            "machine": machine(),
            "load": {"before": before, "after": os.getloadavg()},
            "settings": {"digest": digest, "overrides": settings, "url": options.url},
            "seed": options.seed,
            "complete": complete,
            "n": len(sitting.rows),
            "usage": sitting.usage,
            "notes": sitting.notes,
            "results": summary.results,
        }
        _show(sitting, summary)
        report = json.dumps({**head, "rows": sitting.rows}, indent=1, ensure_ascii=False)
        (options.out / "report.json").write_text(report + "\n", "utf-8")
        if options.history is not None and sitting.rows:
            history.append(options.history, {**head, "values": summary.values})
        click.echo(str(options.out / "report.json"))


async def _run(benchmark: Benchmark, sitting: Sitting) -> None:
    await benchmark.measure(sitting)


def _digest(config: Path | None, overrides: Mapping[str, object]) -> str:
    """SHA-256 of the settings that the server will run with. Raises ConfigError for a wrong one."""
    settings = load(config, overrides).model_dump_json(exclude={"server"})
    return hashlib.sha256(settings.encode()).hexdigest()[:16]


def _show(sitting: Sitting, summary: Summary) -> None:
    if not sitting.rows:
        sitting.say("nothing was measured")
        return
    for table in summary.tables:
        sitting.console.print(table)
    for used in sitting.usage:
        server, client = used["server_cores"], used["client_cores"]
        if server is not None:
            rss = f", {used['server_rss_mb']:.0f} MB" if used["server_rss_mb"] else ""
            sitting.say(f"{used['label']}: server {server:.2f} cores{rss}; caller {client:.2f} cores")
    for line in (*sitting.notes, *summary.remarks):
        sitting.say(line)
