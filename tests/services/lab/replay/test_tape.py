"""Reading a tape: what is none, what is damaged, what another version wrote."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from services.lab.replay import tape
from services.lab.replay.tape import BadTapeError
from tests.services.lab.replay.calls import recorded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(recorded(tmp_path_factory.mktemp("calls"), 4, [(1, 2)]))


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_a_whole_tape(folder: Path) -> None:
    kept = tape.load(folder)
    assert kept.whole
    assert len(kept.microphone) == 4 * 48_000
    assert kept.header.settings["agent"]["greeting"] == "Welcome."


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (shutil.rmtree, "there is no such folder"),
        (lambda folder: (folder / "call.json").unlink(), "is not the recording of a call"),
        (lambda folder: (folder / "call.json").write_text("{"), "call.json: is damaged"),
        (lambda folder: (folder / "call.json").write_text("[]"), "call.json: is damaged"),
        (lambda folder: (folder / "tape.jsonl").unlink(), "cannot be read (No such file"),
        (lambda folder: (folder / "tape.jsonl").write_text(""), "holds no call"),
        (lambda folder: (folder / "microphone.wav").write_bytes(b"RIFF"), "not a WAV file"),
        (lambda folder: (folder / "microphone.wav").unlink(), "cannot be read"),
    ],
)
def test_what_is_no_tape_is_told_in_words(copy: Path, damage: Callable[[Path], object], told: str) -> None:
    damage(copy)
    with pytest.raises(BadTapeError) as caught:
        tape.load(copy)
    assert told in str(caught.value)
    assert str(copy) in str(caught.value)


def test_a_tape_of_another_schema_names_both(copy: Path) -> None:
    header = json.loads((copy / "call.json").read_text())
    (copy / "call.json").write_text(json.dumps({**header, "schema_version": 7, "version": "3.0"}))
    with pytest.raises(BadTapeError, match=r"schema_version is 7; this Visavis replays 1.*\(3\.0\)"):
        tape.load(copy)


def test_a_header_that_lacks_something_names_it(copy: Path) -> None:
    header = json.loads((copy / "call.json").read_text())
    del header["started"]
    (copy / "call.json").write_text(json.dumps(header))
    with pytest.raises(BadTapeError, match=r"call\.json: is damaged: started: Field required"):
        tape.load(copy)


@pytest.mark.parametrize("line", ["no json", '{"kind": "photo"}', '{"kind": "frame", "at": 1}'])
def test_a_damaged_line_is_named(copy: Path, line: str) -> None:
    lines = (copy / "tape.jsonl").read_text().splitlines()
    lines[9] = line
    (copy / "tape.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(BadTapeError, match=r"tape\.jsonl, line 10: is damaged: "):
        tape.load(copy)


def test_a_microphone_that_lacks_its_end_is_told(copy: Path) -> None:
    whole = (copy / "microphone.wav").read_bytes()
    (copy / "microphone.wav").write_bytes(whole[:-10_000])
    with pytest.raises(BadTapeError, match=r"shorter than tape\.jsonl tells"):
        tape.load(copy)


def test_a_line_that_was_not_written_to_its_end_is_left_out(copy: Path) -> None:
    whole = (copy / "tape.jsonl").read_bytes()
    (copy / "tape.jsonl").write_bytes(whole[:-5])
    assert not tape.load(copy).whole
