"""A tape's writer: what it keeps, and that it never holds anybody up."""

import asyncio
import json
import logging
import stat
import threading
import wave
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from pipeline.tape import writer as module
from pipeline.tape.entries import SCHEMA_VERSION, Asked, Call, Ended, Frame, Header, Piece, Sound, Told
from pipeline.tape.writer import TapeWriter, writing

HEADER = Header(SCHEMA_VERSION, "0", "s1", "2026-01-01", 1.0, False, {"agent": {"name": "Vis"}})


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "tape.jsonl").read_text().splitlines()]


async def test_what_is_put_on_a_tape_is_in_its_folder(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    pcm = np.arange(960, dtype=np.int16)
    folder = tmp_path / "calls" / "one"
    async with writing(folder, HEADER, executor) as tape:
        for index in range(250):
            tape.put(Sound(1.0 + index, 0.5, 960), pcm)
            tape.put(Frame(0.1 + 0.2, index))
        tape.put(Told(2.0, "half a surrogate \ud800"))
        tape.put(Call(1.0, Asked.SYNTHESIZER, "k", "a", [Piece(1, 2, {"pcm": pcm})], 2.0, 2.0, "done"))
        tape.put(Ended(9.0, None))
    assert json.loads((folder / "call.json").read_text())["settings"] == {"agent": {"name": "Vis"}}
    kept = lines(folder)
    assert len(kept) == 503
    assert kept[1] == {"at": 0.1 + 0.2, "index": 0, "kind": "frame"}, "to the last bit"
    with wave.open(str(folder / "microphone.wav")) as file:
        assert file.getframerate() == 48_000
        assert file.readframes(10**9) == pcm.tobytes() * 250


async def test_nobody_else_can_read_it(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    async with writing(tmp_path / "calls" / "one", HEADER, executor):
        pass
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "calls", tmp_path / "calls" / "one")]
    assert modes == [0o700, 0o700]


def test_what_was_written_is_whole_before_the_tape_is(tmp_path: Path) -> None:
    """So that nothing but the last moments are lost with a server that is killed."""
    files = module._Files(tmp_path / "one")
    files.open(HEADER)
    files.write([(Sound(float(index), 0.0, 960), np.ones(960, np.int16)) for index in range(100)])
    assert len(lines(tmp_path / "one")) == 100
    with wave.open(str(tmp_path / "one" / "microphone.wav")) as file:
        assert file.getnframes() == 96_000
    files.close()


async def test_a_folder_that_cannot_be_made_ends_the_tape_and_nothing_else(
    tmp_path: Path, executor: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "calls").write_text("a file")
    async with writing(tmp_path / "calls" / "one", HEADER, executor) as tape:
        tape.put(Frame(1.0, 1))
    assert [record.getMessage() for record in caplog.records] == [
        "session s1: the recording ends here: File exists"
    ]


async def test_a_full_disk_is_told_once(
    tmp_path: Path,
    executor: ThreadPoolExecutor,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write(self: object, waiting: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module._Files, "write", write)
    async with writing(tmp_path / "one", HEADER, executor) as tape:
        for index in range(1000):
            tape.put(Frame(1.0, index))
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["session s1: the recording ends here: No space left on device"]


async def test_a_disk_that_cannot_keep_up_ends_the_tape_before_the_memory_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 300)
    caplog.set_level(logging.WARNING)
    free = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        executor.submit(free.wait)
        tape = TapeWriter(tmp_path / "one", HEADER, executor)
        task = asyncio.create_task(tape.write())
        await asyncio.sleep(0)
        for index in range(1000):
            tape.put(Frame(1.0, index))
        assert len(tape._waiting) == 0
        free.set()
        await task
    assert [record.getMessage() for record in caplog.records] == [
        "session s1: the recording ends here: the disk cannot keep up"
    ]
    assert lines(tmp_path / "one") == []
