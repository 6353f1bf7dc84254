"""The real gateway with real sessions on a real wire; only what is thought, said and drawn follows a script.

It runs in a thread, with an event loop of its own: what stands still there does not hold up its caller.
"""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import uvicorn

from pipeline.clock import Clock, MonotonicClock
from pipeline.events import WIRE_RATE, Image, Mood, Pose, Prompt, SpeechChunk, TextDelta
from pipeline.session import SessionSettings
from pipeline.stages import Conduct, Lines, Stages
from pipeline.timeline.loop_lag import LoopLag
from pipeline.tts.clauses import WHOLE_SENTENCES
from pipeline.webrtc.tuning.loopback import offer_loopback
from services import slo
from services.config import Config
from services.gateway.app import make_app
from services.gateway.sessions import Sessions
from services.telemetry.prometheus import Prometheus
from services.telemetry.telemetry import Telemetry
from tests.pipeline.test_dialogue import WORD_SECONDS, Models, Portrait, speech
from tests.pipeline.test_session import DeafEar

SENTENCES = ("I am very well today.", "Thank you for asking me.", "What would you like now?", "Tell me more.")

SENTENCE_SECONDS = 5 * WORD_SECONDS
"""Of each but the last."""

_HZ = 220
"""A whole number of periods fits into a word."""

_ENCODERS = 2
"""As in the real stack."""


def toned(text: str) -> SpeechChunk:
    """A tone for as long as the text would take, without a pause."""
    chunk = speech(text)
    times = np.arange(len(chunk.pcm)) / WIRE_RATE
    return replace(chunk, pcm=np.asarray(6000 * np.sin(2 * np.pi * _HZ * times), np.int16))


@dataclass
class Script:
    """What is to go wrong. Seconds; set by the caller, at any time."""

    model_stalls: float | None = None
    """Silence before the second sentence, whose text is not there."""
    split: int = 1
    """Words of it that are written before."""
    voice_stalls: float | None = None
    """Silence after two words of the second sentence."""
    drawing_takes: float = 0.0
    """More than usual, for the next picture alone."""
    drawn: list[float] = field(default_factory=list)
    """When each picture was done, for whoever wants to check; of the monotonic clock."""


class Actor(Models, Portrait):
    """All models, the performer and the face of one call."""

    width = height = 64

    def __init__(self, clock: Clock, script: Script) -> None:
        Models.__init__(self, clock)  # type: ignore[arg-type]
        Portrait.__init__(self)
        self._script = script
        self._began: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._voice = ScriptedVoice(self, script)
        self.voice = self._voice  # type: ignore[assignment]

    async def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        first, rest = SENTENCES[0], " ".join(SENTENCES[1:]).split()
        written = self._script.split
        yield TextDelta(f"{first} {' '.join(rest[:written])} ", self.clock.now())
        if self._script.model_stalls is not None:
            await self.dry(SENTENCE_SECONDS, self._script.model_stalls)
        yield TextDelta(" ".join(rest[written:]), self.clock.now())

    async def dry(self, played: float, seconds: float) -> None:
        """Until so long after so much of the reply has been played."""
        await self.clock.sleep_until(await self._began + played + seconds)

    def pose(self, now: float, position: float | None, mood: Mood) -> Pose:
        if position is not None and not self._began.done():
            self._began.set_result(now - position)
        return Pose(jaw=0.0 if position is None else 0.5)

    def clear(self) -> None:
        super().clear()
        if self._began.done():
            self._began = asyncio.get_running_loop().create_future()

    def draw(self, pose: Pose) -> Image:
        seconds, self._script.drawing_takes = self._script.drawing_takes, 0.0
        time.sleep(seconds)
        shade = len(self._script.drawn) % 200
        self._script.drawn.append(time.monotonic())
        return np.full((self.height, self.width, 3), shade, np.uint8)


class ScriptedVoice:
    def __init__(self, actor: Actor, script: Script) -> None:
        self._actor = actor
        self._script = script

    async def stream(self, text: str) -> AsyncGenerator[SpeechChunk, None]:
        stalls, words = self._script.voice_stalls, text.split()
        if stalls is None or text != SENTENCES[1]:
            yield toned(text)
            return
        yield toned(" ".join(words[:2]))
        await self._actor.dry(SENTENCE_SECONDS + 2 * WORD_SECONDS, stalls)
        yield toned(" ".join(words[2:]))


@dataclass
class _Stack:
    """As much of `services.stack.Stack` as a gateway asks for."""

    script: Script
    clock: Clock
    loop_lag: LoopLag
    pencil: ThreadPoolExecutor
    config: Config = field(default_factory=Config)
    session_settings: SessionSettings = field(default_factory=SessionSettings)
    route: Mapping[str, Any] = field(default_factory=lambda: {"pattern": "colocated", "dialect": "openai"})

    def trouble(self) -> str | None:
        return None

    @asynccontextmanager
    async def stages(self) -> AsyncIterator[Stages]:
        actor = Actor(self.clock, self.script)
        yield Stages(
            ear=DeafEar(),
            transcriber=actor,
            prompts=actor,
            language_model=actor,
            synthesizer=actor.voice,
            performer=actor,
            face=actor,
            render_executor=self.pencil,
            lines=Lines(apology=toned("Sorry.")),
            conduct=Conduct(clauses=WHOLE_SENTENCES),
        )


class _Keeper:
    """An exporter that hands on what it is told."""

    name = "keeper"

    def __init__(self, keep: Callable[[Mapping[str, Any]], None]) -> None:
        self._keep = keep

    def session_began(self, session_id: str) -> None: ...

    def turn(self, record: Mapping[str, Any]) -> None:
        self._keep(record)

    def session_ended(self, session_id: str) -> None: ...


class ScriptedServer:
    """Made by `scripted_server`."""

    def __init__(self) -> None:
        self.script = Script()
        self.records: list[Mapping[str, Any]] = []
        """What telemetry was told of each turn; of all of them once the server has ended."""
        self.url = ""
        self.thread: int | None = None
        """Its `threading.get_ident()`."""
        self._turns: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._home = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    async def turn(self) -> Mapping[str, Any]:
        """The next turn's record, once it is there; for a caller who does not read messages."""
        return await self._turns.get()

    def block_loop(self, seconds: float) -> None:
        """Have its event loop stand still."""
        self._do(time.sleep, seconds)

    def block_encoders(self, seconds: float) -> None:
        """Have everything that is to be encoded wait."""
        for _ in range(_ENCODERS):
            self._do(self._encode, seconds)

    def stop(self) -> None:
        self._do(self._stop.set)

    async def serve(self, ready: "Future[None]") -> None:
        """On a loop of its own, until it is stopped."""
        self._loop, self.thread = asyncio.get_running_loop(), threading.get_ident()
        clock = MonotonicClock()
        lag = LoopLag(clock)
        with (
            socket.create_server(("127.0.0.1", 0)) as listening,
            ThreadPoolExecutor(1) as pencil,
            ThreadPoolExecutor(_ENCODERS) as encoders,
        ):
            self._loop.set_default_executor(encoders)
            stack: Any = _Stack(self.script, clock, lag, pencil)
            prometheus = Prometheus(lag, slo.load(None), stack.config.server.max_sessions)
            telemetry = Telemetry(prometheus, [_Keeper(self._keep)])
            async with asyncio.TaskGroup() as tasks, Sessions(stack, telemetry) as sessions:
                app = make_app(stack.config, sessions, prometheus)
                http = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
                watching = tasks.create_task(lag.watch())
                tasks.create_task(http.serve(sockets=[listening]))
                self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
                ready.set_result(None)
                await self._stop.wait()
                http.should_exit = True
                watching.cancel()

    def _keep(self, record: Mapping[str, Any]) -> None:
        self.records.append(record)
        self._home.call_soon_threadsafe(self._turns.put_nowait, record)

    def _do(self, deed: Callable[..., object], *arguments: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(deed, *arguments)

    def _encode(self, seconds: float) -> None:
        assert self._loop is not None
        self._loop.run_in_executor(None, time.sleep, seconds)


@asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    """On a free port of this machine; once it is left, everything of it has ended."""
    offer_loopback()
    server, ready = ScriptedServer(), Future[None]()
    with ThreadPoolExecutor(1, thread_name_prefix="server") as executor:
        serving = executor.submit(lambda: asyncio.run(server.serve(ready)))
        serving.add_done_callback(lambda _: ready.cancel())  # what went wrong, it says itself
        try:
            await asyncio.wrap_future(ready)
            yield server
        finally:
            if not serving.done():
                server.stop()
            await asyncio.wrap_future(serving)
