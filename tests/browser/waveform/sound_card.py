"""A sound card of a test's own: a private PulseAudio, and one recording of its microphone and loudspeaker.

Both are mono halves of one stereo null sink, so that they share its clock, which is its own: it rounds, and
gains some 200 ppm on the machine's. What is said into the microphone is the left channel, what the browser
plays is the right one, and a recorder of the sink gets them in step.
"""

import asyncio
import os
import shutil
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.clock import MonotonicClock
from pipeline.events import WIRE_RATE, Pcm

PROGRAMS = ("pulseaudio", "paplay", "parec")
"""Debian: pulseaudio, pulseaudio-utils."""

_CHANNELS = f"rate={WIRE_RATE} channels=2 channel_map=front-left,front-right"
_LEFT = "channels=1 channel_map=mono master_channel_map=front-left remix=no"
_RIGHT = "channels=1 channel_map=mono master_channel_map=front-right remix=no"

# Without rewinds: what was recorded already would otherwise be rendered, and recorded, once more.
_SCRIPT = f"""
load-module module-native-protocol-unix socket={{socket}} auth-anonymous=1 auth-cookie-enabled=0
load-module module-null-sink sink_name=hub {_CHANNELS} norewinds=1
load-module module-remap-sink sink_name=mouth master=hub {_LEFT}
load-module module-remap-sink sink_name=loudspeaker master=hub {_RIGHT}
load-module module-remap-source source_name=microphone master=hub.monitor {_LEFT}
set-default-sink loudspeaker
set-default-source microphone
"""

_RECORDER_LATENCY_MS = 20

_LATELY = 5.0
"""Seconds, in which two clocks do not part."""

_SETTINGS = f"default-sample-rate = {WIRE_RATE}\nalternate-sample-rate = {WIRE_RATE}\n"
"""What a browser takes to be the hardware's."""

_FRAME = np.dtype((np.int16, 2)).itemsize


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class Recording:
    """What was said and what was played, so far."""

    def __init__(self) -> None:
        self._clock = MonotonicClock()
        self._samples = bytearray()
        self._arrivals: deque[tuple[float, float]] = deque()
        """When pieces came, and when the recording would have begun by that, on the machine's clock."""

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Until it ends."""
        while data := await stream.read(1 << 16):
            self._samples += data
            now = self._clock.now()
            self._arrivals.append((now, now - len(self._samples) / _FRAME / WIRE_RATE))
            while self._arrivals[0][0] < now - _LATELY:
                self._arrivals.popleft()

    @property
    def began(self) -> float:
        """The machine's clock less the recording's of late, but for a constant: what the recorder takes."""
        # A piece may come late, and never early.
        return min(began for _, began in self._arrivals)

    @property
    def sides(self) -> tuple[Pcm, Pcm]:
        """The microphone's and the loudspeaker's."""
        whole = len(self._samples) // _FRAME * _FRAME
        samples: npt.NDArray[np.int16] = np.frombuffer(bytes(self._samples[:whole]), np.int16)
        left, right = samples.reshape(-1, 2).T
        return left, right


@dataclass(frozen=True, slots=True)
class SoundCard:
    """`environment`: what a client of it needs, whose default devices are the microphone and loudspeaker."""

    environment: Mapping[str, str]

    async def say(self, wav: Path) -> None:
        """Into the microphone, to the end."""
        await self._run("paplay", "--device=mouth", str(wav))

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[Recording]:
        """Of both sides, from now on."""
        format_ = ("--raw", "--format=s16le", f"--rate={WIRE_RATE}", "--channels=2")
        latency = f"--latency-msec={_RECORDER_LATENCY_MS}"
        recorder = await self._start("parec", "--device=hub.monitor", *format_, latency)
        assert recorder.stdout is not None
        recording = Recording()
        reading = asyncio.create_task(recording.read(recorder.stdout))
        try:
            yield recording
        finally:
            recorder.terminate()
            await recorder.wait()
            await reading

    async def _run(self, *command: str) -> None:
        process = await self._start(*command)
        assert await process.wait() == 0, f"{command[0]} failed"

    async def _start(self, *command: str) -> asyncio.subprocess.Process:
        environment = {**os.environ, **self.environment}
        return await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)


@asynccontextmanager
async def sound_card(folder: Path) -> AsyncIterator[SoundCard]:
    """Runs as long as it is used. `folder` takes its socket and its files."""
    socket, script, settings = folder / "native", folder / "devices.pa", folder / "daemon.conf"
    script.write_text(_SCRIPT.format(socket=socket))
    settings.write_text(_SETTINGS)
    own = {
        "PULSE_RUNTIME_PATH": str(folder),
        "PULSE_STATE_PATH": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "PULSE_COOKIE": str(folder / "cookie"),
        "PULSE_CONFIG": str(settings),
    }
    server = SoundCard(own)
    # It becomes a daemon once its devices are there: then the socket can be used.
    options = ("--daemonize=yes", "--exit-idle-time=-1", f"--log-target=file:{folder / 'log'}")
    await server._run("pulseaudio", "-n", *options, "-F", str(script))
    try:
        yield SoundCard({"PULSE_SERVER": f"unix:{socket}", "PULSE_COOKIE": str(folder / "cookie")})
    finally:
        await server._run("pulseaudio", "--kill")
