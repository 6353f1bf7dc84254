"""What is audible: the definition that every measurement here uses (docs/metrics.md).

Voiced or audible: a run of at least 40 ms of 10 ms frames above −50 dBFS RMS, or, in a noisy file,
above its noise floor + 12 dB. The floor is the file's quietest 100 ms; a percentile of its frames would,
in a file that is nearly all speech, be that of a soft syllable, and its last one would not be voiced.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.events import WIRE_RATE, Pcm

FRAME = WIRE_RATE // 100
LEVEL_DBFS = -50.0
RUN_FRAMES = 4
_NOISY_MARGIN_DB = 12.0
_FLOOR_FRAMES = 10


@dataclass(frozen=True, slots=True)
class Run:
    """Audible samples `start` (included) to `end` (excluded), at WIRE_RATE."""

    start: int
    end: int


def levels(pcm: Pcm) -> npt.NDArray[np.float64]:
    """dBFS RMS of each whole 10 ms frame; digital silence is -200."""
    frames = pcm[: len(pcm) // FRAME * FRAME].reshape(-1, FRAME).astype(np.float64) / 32768
    power: npt.NDArray[np.float64] = np.maximum((frames * frames).mean(axis=1), 1e-20)
    return np.asarray(10 * np.log10(power))


def voiced_limit(pcm: Pcm) -> float:
    """dBFS above which frames of a recording at WIRE_RATE are voiced, by its own noise floor."""
    measured = levels(pcm)
    if len(measured) < _FLOOR_FRAMES:
        return LEVEL_DBFS
    power = np.convolve(10 ** (measured / 10), np.full(_FLOOR_FRAMES, 1 / _FLOOR_FRAMES), "valid")
    limit = float(10 * np.log10(power.min())) + _NOISY_MARGIN_DB
    # A file without a pause has no noise floor: its quietest part is a soft syllable.
    return max(LEVEL_DBFS, limit) if limit < np.percentile(measured, 95) - _NOISY_MARGIN_DB else LEVEL_DBFS


def audible_runs(pcm: Pcm, limit: float = LEVEL_DBFS) -> list[Run]:
    """The runs in audio at WIRE_RATE that are louder than `limit`, dBFS."""
    measured = levels(pcm)
    loud = np.concatenate(([0], (measured > limit).astype(np.int8), [0]))
    edges = np.flatnonzero(np.diff(loud))
    spans = zip(edges[::2], edges[1::2], strict=True)
    return [Run(int(a) * FRAME, int(b) * FRAME) for a, b in spans if b - a >= RUN_FRAMES]
