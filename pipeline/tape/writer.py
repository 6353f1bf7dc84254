"""Keeps a tape in a folder. It never waits for the disk and never fails whoever gives it something."""

import asyncio
import json
import logging
import wave
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from pipeline.events import WIRE_RATE, Pcm
from pipeline.tape.entries import ENTRIES, HEADER, MICROPHONE, Entry, Header
from pipeline.tape.values import as_json

_log = logging.getLogger(__name__)

_BATCH = 100
"""Entries that are written at once: half a second's."""

_MOST = 6000
"""Entries that wait for the disk, half a minute's; when there are more the tape ends. One with a hole in it
would tell of another call."""

_LONGEST = 2**30
"""Samples in a file of sound, six hours' worth: a WAV file holds at most 4 GB."""

_Waiting = tuple[Entry, Pcm | None]


class TapeWriter:
    """Takes entries on the loop and writes them on an executor."""

    def __init__(self, folder: Path, header: Header, executor: Executor) -> None:
        self._folder = folder
        self._header = header
        self._executor = executor
        self._waiting: list[_Waiting] = []
        self._news = asyncio.Event()
        self._samples = 0
        self._over = False
        """Nothing more is taken."""

    def put(self, entry: Entry, pcm: Pcm | None = None) -> None:
        """`pcm`: what the microphone brought, at WIRE_RATE."""
        if self._over:
            return
        self._samples += 0 if pcm is None else len(pcm)
        if len(self._waiting) >= _MOST:
            self._give_up("the disk cannot keep up")
        elif self._samples > _LONGEST:
            self._give_up("the call is too long for one file of sound")
        else:
            self._waiting.append((entry, pcm))
            if len(self._waiting) >= _BATCH:
                self._news.set()

    def finish(self) -> None:
        """Nothing more will come; `write` returns when what there is has been written."""
        self._over = True
        self._news.set()

    async def write(self) -> None:
        """Until `finish`, or for as long as the disk takes it."""
        try:
            await self._write(_Files(self._folder))
        except OSError as error:
            self._give_up(error.strerror or str(error))

    async def _write(self, files: "_Files") -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._executor, files.open, self._header)
            while not self._over or self._waiting:
                await self._news.wait()
                if not self._over:
                    self._news.clear()
                waiting, self._waiting = self._waiting, []
                await loop.run_in_executor(self._executor, files.write, waiting)
        finally:
            await loop.run_in_executor(self._executor, files.close)

    def _give_up(self, reason: str) -> None:
        _log.warning("session %s: the recording ends here: %s", self._header.session_id, reason)
        self._waiting.clear()
        self.finish()


@asynccontextmanager
async def writing(folder: Path, header: Header, executor: Executor) -> AsyncIterator[TapeWriter]:
    """A tape in a folder that is made for it; afterwards it is whole."""
    writer = TapeWriter(folder, header, executor)
    task = asyncio.create_task(writer.write(), name="tape")
    try:
        yield writer
    finally:
        writer.finish()
        await asyncio.wait([task])


class _Files:
    """The folder's files, used on the executor. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scope = ExitStack()

    def open(self, header: Header) -> None:
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700)
        text = json.dumps(asdict(header), indent=1, ensure_ascii=False)
        (self._folder / HEADER).write_text(text + "\n", "utf-8")
        self._entries = self._scope.enter_context((self._folder / ENTRIES).open("w", encoding="utf-8"))
        self._microphone = self._scope.enter_context(wave.Wave_write(str(self._folder / MICROPHONE)))
        self._microphone.setnchannels(1)
        self._microphone.setsampwidth(2)
        self._microphone.setframerate(WIRE_RATE)

    def write(self, waiting: Sequence[_Waiting]) -> None:
        """Sound first: whatever is told of must be there."""
        self._microphone.writeframes(b"".join(pcm.tobytes() for _, pcm in waiting if pcm is not None))
        for entry, _ in waiting:
            self._entries.write(json.dumps(asdict(entry), default=as_json) + "\n")
        self._entries.flush()

    def close(self) -> None:
        self._scope.close()
