"""When something sounded, in a recording: by the project's own definition, and finer than its frames.

A frame of 10 ms says only in which 10 ms a sound began. So the frames are laid over the recording at each
millisecond, and the median of what they say is taken: the grid's place no longer matters.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.audible import FRAME, LEVEL_DBFS, audible_runs
from pipeline.events import WIRE_RATE, Pcm

_STEP = WIRE_RATE // 1000


@dataclass(frozen=True, slots=True)
class Sound:
    """From its first to its last audible sample, seconds of the recording."""

    start: float
    end: float


def sounds(pcm: Pcm, pause: float) -> list[Sound]:
    """What is audible in a recording; a silence shorter than `pause` (seconds) belongs to it."""
    laid = [_joined(pcm, offset, pause) for offset in range(0, FRAME, _STEP)]
    return [
        Sound(float(np.median([each.start for each in seen])), float(np.median([each.end for each in seen])))
        for seen in zip(*laid, strict=True)
    ]


def _joined(pcm: Pcm, offset: int, pause: float) -> list[Sound]:
    joined: list[Sound] = []
    for run in audible_runs(pcm[offset:], LEVEL_DBFS):
        start, end = (run.start + offset) / WIRE_RATE, (run.end + offset) / WIRE_RATE
        if joined and start - joined[-1].end < pause:
            joined[-1] = Sound(joined[-1].start, end)
        else:
            joined.append(Sound(start, end))
    return joined
