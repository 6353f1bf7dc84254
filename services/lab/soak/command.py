"""Runs a soak: a server, its users, those who watch them, and at the end, however it comes, the report."""

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from pipeline.clock import MonotonicClock, wall_time
from pipeline.errors import BadInputError
from pipeline.timeline.loop_lag import LoopLag
from pipeline.webrtc.tuning.loopback import offer_loopback
from services import slo
from services.config import load
from services.lab import speech_file
from services.lab.own_server import own_server
from services.lab.soak import browser, lines, page, report
from services.lab.soak.display import Display
from services.lab.soak.findings import Findings, Plan, Sample
from services.lab.soak.options import Options
from services.lab.soak.report import Circumstances
from services.lab.soak.resources import Observer
from services.lab.soak.synthetic import SyntheticCaller
from services.lab.speech_file import SpeechFile
from services.lab.studio.speech import Spoken

_FILES = ("report.json", "report.html")

UserMaker = Callable[[int, Plan, Sequence[Spoken]], Coroutine[Any, Any, None]]
"""Takes all turns of one user."""


async def run(options: Options) -> int:
    """Soak, and write report.json and report.html into `options.report`.

    Returns 0 when every limit was measured and holds, 1 when not, 128 + the signal's number when SIGINT or
    SIGTERM ended it early. Raises BadInputError and ConfigError before anything is started,
    ServerStartError, PrepareError, BrowserMissingError.
    """
    limits = slo.load(options.slo)
    files = [speech_file.load(path) for path in options.audio]
    try:
        await asyncio.to_thread(_make_room, options.report)
    except OSError as error:
        raise BadInputError(f"--report {options.report}: cannot be written to ({error.strerror})") from error
    offer_loopback()
    findings, before, date, holds = Findings(), os.getloadavg(), wall_time(), False
    work = asyncio.create_task(_hold(options, files, findings, Console(stderr=True, highlight=False)))
    try:
        with _stopped_by_signals(work, findings):
            await work
    except asyncio.CancelledError:
        if findings.stopped_by is None:
            raise
    finally:
        if findings.began is not None or findings.stopped_by is not None:
            circumstances = Circumstances(date, before, os.getloadavg())
            found = report.build(options, limits, findings, circumstances)
            _write(options.report, found)
            _tell(found, options.report)
            holds = found["slo"]["holds"]
    if findings.stopped_by is not None:
        return 128 + signal.Signals[findings.stopped_by]
    return 0 if holds else 1


@contextmanager
def _stopped_by_signals(work: "asyncio.Task[None]", findings: Findings) -> Iterator[None]:
    """The first SIGINT or SIGTERM ends the work; what comes after it does not hurry its end."""
    loop = asyncio.get_running_loop()

    def stop(name: str) -> None:
        if findings.stopped_by is None:
            findings.stopped_by = name
            work.cancel()

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop, number.name)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _hold(options: Options, files: Sequence[SpeechFile], findings: Findings, console: Console) -> None:
    clock = MonotonicClock()
    async with contextlib.AsyncExitStack() as scope:
        users = await scope.enter_async_context(_users(options))
        said: Sequence[Sequence[Spoken]] = [lines.of_files(files)] * options.sessions
        if not files:
            rng = np.random.default_rng((options.seed, 0))
            said = lines.dealt(await lines.synthesised(options, rng, console), options.sessions)
        url = options.url
        if url is None:
            with console.status("Starting a server (the first time on a machine takes longer) …"):
                url = await scope.enter_async_context(_server(options))
        findings.began = clock.now()
        display = scope.enter_context(Display(console, options))
        plan = Plan(options, url, clock, findings.began, findings, display.record)

        def take(sample: Sample) -> None:
            findings.samples.append(sample)
            display.elapsed(sample.at_s)

        try:
            await _talk(plan, users, said, take)
        finally:
            findings.ended = clock.now()


@asynccontextmanager
async def _users(options: Options) -> AsyncIterator[UserMaker]:
    """How one user is made and takes its turns."""
    if not options.browser:
        yield lambda number, plan, said: SyntheticCaller(number, plan, said).run()
        return
    with tempfile.TemporaryDirectory(prefix="visavis-soak-") as folder:
        async with browser.driver() as (playwright, executable):
            from services.lab.soak.chromium import Chromium, ChromiumUser  # needs what was just found

            chromium = Chromium(playwright, executable, Path(folder))
            yield lambda number, plan, said: ChromiumUser(number, plan, said, chromium).run()


@asynccontextmanager
async def _server(options: Options) -> AsyncIterator[str]:
    """One that takes all users."""
    places = max(load(options.config).server.max_sessions, options.sessions)
    async with own_server(options.config, {"server.max_sessions": places}) as url:
        yield url


async def _talk(
    plan: Plan, users: UserMaker, said: Sequence[Sequence[Spoken]], take: Callable[[Sample], None]
) -> None:
    """All users at once, who say what is `said` by each, watched until the last has finished."""
    lag = LoopLag(plan.clock)
    observer = Observer(plan.url, plan.clock, plan.began, lag)
    async with asyncio.TaskGroup() as watching:
        watchers = [watching.create_task(each) for each in (lag.watch(), observer.watch(take))]
        async with asyncio.TaskGroup() as talking:
            for number, own in enumerate(said):
                talking.create_task(users(number, plan, own))
        for watcher in watchers:
            watcher.cancel()


def _make_room(folder: Path) -> None:
    """Find out before the soak, not after it, that its report cannot be kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        (folder / name).open("ab").close()


def _write(folder: Path, found: page.Report) -> None:
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(text + "\n", "utf-8")
    (folder / "report.html").write_text(page.render(found), "utf-8")


def _tell(found: page.Report, folder: Path) -> None:
    for client, verdicts in found["verdicts"].items():
        for each in verdicts:
            value = "–" if each["value"] is None else f"{each['value']:g}"
            limit, word = f"{each['bound']} {each['limit']:g}", page.VERDICTS[each["holds"]][0]
            click.echo(f"{client}: {each['name']} {value} ({limit}): {word}", err=True)
    click.echo(str(folder / "report.html"))
