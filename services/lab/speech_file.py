"""A recording that a synthetic user speaks: any audio format, as 48 kHz mono, with its voiced span."""

from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.audio.resampler import AudioResampler
from av.error import FFmpegError

from pipeline.audible import Run, audible_runs, voiced_limit
from pipeline.errors import BadAudioError
from pipeline.events import WIRE_RATE, Pcm

MAX_SECONDS = 300
"""Longer files are refused: they are not one turn."""

_EDGE = WIRE_RATE // 10
"""Silence kept before and after the voiced span."""


@dataclass(frozen=True, slots=True)
class SpeechFile:
    """One turn's speech. `voiced` is where it is audible, from its first to its last voiced sample."""

    path: Path
    pcm: Pcm
    voiced: Run
    skipped: int = 0
    """Samples of the file before the first of `pcm`."""


def load(path: Path, limit: float | None = None) -> SpeechFile:
    """Read a file. `limit`: dBFS above which it is voiced; None: by its own noise floor.

    Raises BadAudioError, naming it, when it is missing, not audio or without speech.
    """
    if not path.exists():
        raise BadAudioError(f"{path}: there is no such file")
    if path.is_dir():
        raise BadAudioError(f"{path}: is a folder; expected an audio file")
    if path.stat().st_size == 0:
        raise BadAudioError(f"{path}: is empty")
    pcm = _decode(path)
    runs = audible_runs(pcm, voiced_limit(pcm) if limit is None else limit)
    if not runs:
        raise BadAudioError(f"{path}: no speech in it; everything is quieter than -50 dBFS")
    if len(pcm) > MAX_SECONDS * WIRE_RATE:
        raise BadAudioError(f"{path}: is longer than {MAX_SECONDS // 60} minutes; a turn is one utterance")
    first, last = runs[0].start, runs[-1].end
    begin, end = max(0, first - _EDGE), min(len(pcm), last + _EDGE)
    return SpeechFile(path, pcm[begin:end], Run(first - begin, last - begin), begin)


def _decode(path: Path) -> Pcm:
    pieces: list[Pcm] = []
    samples = 0
    try:
        with av.open(str(path)) as container:
            if not container.streams.audio:
                raise BadAudioError(f"{path}: has no audio in it")
            resampler = AudioResampler(format="s16", layout="mono", rate=WIRE_RATE)
            for frame in container.decode(audio=0):
                for piece in resampler.resample(frame):
                    pieces.append(piece.to_ndarray()[0])
                    samples += len(pieces[-1])
                if samples > (MAX_SECONDS + 1) * WIRE_RATE:
                    return np.concatenate(pieces)
            pieces += [piece.to_ndarray()[0] for piece in resampler.resample(None)]
    except FFmpegError as error:
        raise BadAudioError(f"{path}: is not audio that can be read ({error.strerror})") from error
    if not pieces:
        raise BadAudioError(f"{path}: has no audio in it")
    return np.concatenate(pieces)
