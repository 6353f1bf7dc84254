"""A pause put into speech, as someone makes who looks for a word."""

from dataclasses import dataclass

import numpy as np

from pipeline.audible import FRAME, Run, levels
from pipeline.events import WIRE_RATE, Pcm

_FADE = WIRE_RATE // 200
"""5 ms: a cut without it clicks."""

_NOISE_DBFS = -70.0
"""What a quiet room leaves in a pause; digital silence would be easier than life."""

_SEARCH = round(0.08 * WIRE_RATE)
"""Recognisers tell word times to some 80 ms."""


@dataclass(frozen=True, slots=True)
class Spliced:
    """`pause` is where nothing is said, in samples of `pcm`."""

    pcm: Pcm
    pause: Run


def quietest(pcm: Pcm, near: int) -> int:
    """The sample within 80 ms of `near` around which 10 ms of the speech are quietest."""
    first = max(0, near - _SEARCH) // FRAME * FRAME
    measured = levels(pcm[first : near + _SEARCH])
    if not len(measured):
        return min(max(near, 0), len(pcm))
    return first + int(np.argmin(measured)) * FRAME + FRAME // 2


def with_pause(pcm: Pcm, at: int, seconds: float, runs: list[Run], seed: int) -> Spliced:
    """`pcm` with `seconds` of quiet at sample `at`.

    `runs` are its audible runs: a silence that it has at `at` already counts towards the pause. Raises
    ValueError when that silence is longer than the pause wanted, or `at` is not inside the speech.
    """
    before = [run for run in runs if run.start < at]
    after = [run for run in runs if run.end > at]
    if not before or not after:
        raise ValueError("a pause lies between words, not before or after them")
    start, end = min(before[-1].end, at), max(after[0].start, at)
    missing = round(seconds * WIRE_RATE) - (end - start)
    if missing < 0:
        raise ValueError(f"the speech pauses for {(end - start) / WIRE_RATE:.2f} s there already")
    rng = np.random.default_rng(seed)
    level = 10 ** (_NOISE_DBFS / 20) * 32768
    noise = np.asarray(np.round(rng.standard_normal(missing) * level), np.int16)
    fade = np.linspace(1.0, 0.0, _FADE, dtype=np.float32)
    head, tail = pcm[:at].astype(np.float32), pcm[at:].astype(np.float32)
    head[-_FADE:] *= fade[-len(head[-_FADE:]) :]
    tail[:_FADE] *= fade[::-1][: len(tail[:_FADE])]
    pieces = (head.astype(np.int16), noise, tail.astype(np.int16))
    return Spliced(np.concatenate(pieces), Run(start, start + round(seconds * WIRE_RATE)))
