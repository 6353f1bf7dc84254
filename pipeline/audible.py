"""What is audible: the definition that every measurement here uses (docs/metrics.md).

Voiced or audible: a run of at least 40 ms of 10 ms frames above −50 dBFS RMS, or, in a noisy file,
above its noise floor + 12 dB.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.events import WIRE_RATE, Pcm

FRAME = WIRE_RATE // 100
LEVEL_DBFS = -50.0
RUN_FRAMES = 4
_NOISY_MARGIN_DB = 12.0


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


def audible_runs(pcm: Pcm, *, noisy: bool = False) -> list[Run]:
    """The audible runs in audio at WIRE_RATE; `noisy` looks at the file's own noise floor."""
    measured = levels(pcm)
    limit = LEVEL_DBFS
    if noisy and len(measured):
        floor, loud_level = np.percentile(measured, (10, 95))
        # A file that is all speech has no noise floor: its quietest part is as loud as the rest.
        if floor + _NOISY_MARGIN_DB < loud_level - _NOISY_MARGIN_DB / 2:
            limit = max(limit, float(floor) + _NOISY_MARGIN_DB)
    loud = np.concatenate(([0], (measured > limit).astype(np.int8), [0]))
    edges = np.flatnonzero(np.diff(loud))
    spans = zip(edges[::2], edges[1::2], strict=True)
    return [Run(int(a) * FRAME, int(b) * FRAME) for a, b in spans if b - a >= RUN_FRAMES]
