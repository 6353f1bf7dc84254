"""Loudness, edges and pauses of synthesised speech. Mono float32, shape (n,)."""

import numpy as np

from pipeline.events import Samples

AUDIBLE = 10 ** (-50 / 20)
"""RMS of a frame from which on it counts as sound: −50 dBFS (docs/metrics.md)."""
_FRAME = 0.005

LEAD = 0.005
"""Seconds kept before the first sound, for what is softer than that. Piper leaves 0 to 470 ms (measured), all
of it waiting time."""

SENTENCE_PAUSE = 0.3
"""Least seconds of quiet after a sentence. Piper leaves 110 to 240 ms; readers pause 300 to 500."""
CLAUSE_PAUSE = 0.15
"""Least seconds of quiet after a comma; Piper leaves 140 to 280 ms."""
CUT_PAUSE = 0.05
"""Most seconds of quiet where a sentence goes on in the next chunk: nobody pauses there."""

_KNEE = 0.8


def amplified(samples: Samples, gain: float) -> Samples:
    """Louder by a constant factor; peaks above 0.8 are rounded off below 1 instead of clipped."""
    louder = samples * np.float32(gain)
    over = np.abs(louder) > _KNEE
    room = 1 - _KNEE
    louder[over] = np.sign(louder[over]) * (_KNEE + room * np.tanh((np.abs(louder[over]) - _KNEE) / room))
    return louder


def audible_span(samples: Samples, rate: int) -> tuple[int, int]:
    """First and last-but-one sample of the sound in `samples`, to 5 ms; (0, n) when there is none."""
    size = max(1, int(rate * _FRAME))
    whole = samples[: len(samples) // size * size].reshape(-1, size)
    loud = np.flatnonzero(np.sqrt(np.mean(np.square(whole), axis=1)) > AUDIBLE)
    if not loud.size:
        return 0, len(samples)
    return int(loud[0]) * size, int(loud[-1] + 1) * size


def lead(samples: Samples, rate: int) -> int:
    """How many samples to drop from the front, so that at most LEAD is left before the first sound."""
    return max(0, audible_span(samples, rate)[0] - int(LEAD * rate))


def with_pause(samples: Samples, rate: int, *, least: float, most: float | None) -> Samples:
    """The samples with between `least` and `most` seconds of quiet after the last sound."""
    last = audible_span(samples, rate)[1]
    end = len(samples) if most is None else min(len(samples), last + int(most * rate))
    return np.pad(samples[:end], (0, max(0, last + int(least * rate) - end)))
