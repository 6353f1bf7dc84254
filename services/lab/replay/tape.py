"""A tape, read from its folder and checked."""

import json
import wave
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from pipeline.errors import BadInputError
from pipeline.events import WIRE_RATE, Pcm
from pipeline.tape.entries import (
    ENTRIES,
    HEADER,
    MICROPHONE,
    SCHEMA_VERSION,
    Answered,
    Asked,
    Call,
    Ended,
    Entry,
    Header,
    Input,
    Sound,
    Told,
)

_HEADER = TypeAdapter(Header)
_ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


class BadTapeError(BadInputError):
    """A folder that is no recording, or a damaged one, or one of another version."""

    code = "bad_tape"


@dataclass(frozen=True, slots=True)
class Tape:
    header: Header
    inputs: Sequence[Input]
    """What came from outside, in order."""
    told: Sequence[Told]
    """What the client was told, in order."""
    calls: Mapping[Asked, Sequence[Call]]
    """What each stage was asked."""
    microphone: Pcm

    @property
    def whole(self) -> bool:
        """False: the recording broke off before the call was over."""
        return isinstance(self.inputs[-1], Ended)


def load(folder: Path) -> Tape:
    """Raises BadTapeError."""
    if not folder.is_dir():
        raise BadTapeError(f"{folder}: there is no such folder; expected the recording of a call")
    if not (folder / HEADER).is_file():
        raise BadTapeError(
            f"{folder}: is not the recording of a call, for it has no {HEADER}; "
            "the folder of telemetry.recordings has one folder for each call"
        )
    header = _header(folder / HEADER)
    entries = _entries(folder / ENTRIES)
    inputs = [entry for entry in entries if not isinstance(entry, Told | Call)]
    if not any(isinstance(entry, Answered) for entry in inputs):
        raise BadTapeError(f"{folder}: holds no call: none was answered")
    microphone = _sound(folder / MICROPHONE)
    if sum(entry.samples or 0 for entry in inputs if isinstance(entry, Sound)) > len(microphone):
        raise BadTapeError(f"{folder / MICROPHONE}: is damaged: shorter than {ENTRIES} tells")
    told = [entry for entry in entries if isinstance(entry, Told)]
    calls = {
        asked: [entry for entry in entries if isinstance(entry, Call) and entry.stage is asked]
        for asked in Asked
    }
    return Tape(header, inputs, told, calls, microphone)


def _header(path: Path) -> Header:
    try:
        written = json.loads(path.read_bytes())
        version = written["schema_version"]
    except (ValueError, LookupError, TypeError) as error:
        raise BadTapeError(f"{path}: is damaged: not the JSON of a recording") from error
    except OSError as error:
        raise BadTapeError(f"{path}: cannot be read ({error.strerror})") from error
    if version != SCHEMA_VERSION:
        raise BadTapeError(
            f"{path}: schema_version is {version}; this Visavis replays {SCHEMA_VERSION}. "
            f"Use the version that made it ({written.get('version', 'unknown')})"
        )
    try:
        return _HEADER.validate_python(written)
    except ValidationError as error:
        raise BadTapeError(f"{path}: is damaged: {_fault(error)}") from error


def _entries(path: Path) -> list[Entry]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadTapeError(f"{path}: cannot be read ({error.strerror})") from error
    entries = []
    for number, line in enumerate(lines[:-1], 1):  # what follows the last line's end was not written whole
        try:
            entries.append(_ENTRY.validate_json(line))
        except ValidationError as error:
            raise BadTapeError(f"{path}, line {number}: is damaged: {_fault(error)}") from error
    return entries


def _fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


def _sound(path: Path) -> Pcm:
    try:
        with wave.open(str(path)) as file:
            shape = file.getnchannels(), file.getsampwidth(), file.getframerate()
            pcm = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    except (wave.Error, EOFError, ValueError) as error:
        raise BadTapeError(f"{path}: is damaged: not a WAV file ({error or 'too short'})") from error
    except OSError as error:
        raise BadTapeError(f"{path}: cannot be read ({error.strerror})") from error
    if shape != (1, 2, WIRE_RATE):
        raise BadTapeError(f"{path}: is no 16-bit mono sound of {WIRE_RATE} Hz")
    return pcm
