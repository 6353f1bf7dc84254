"""Is the mouth truthful? Openness seen in pictures against the phonemes spoken."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from pipeline.events import Image, Phoneme
from tests.pipeline.render.mouth_reader import openness

BILABIALS = frozenset("pbm")
OPEN_VOWELS = frozenset("ɑæaɔ")
STRESS = frozenset("ˈˌ")
SILENT = frozenset(' ^$!(),-.:;?"')

CLOSED = 0.2
OPEN = 0.5
AT_REST = 0.1

SHORTEST_JUDGED_S = 0.05
"""Shorter than this a frame every 40 ms may miss it."""

SHORTEST_SILENCE_S = 0.2
SILENCE_MARGIN_S = 0.08
"""Around speech the mouth is on its way."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame that was drawn for an audio position, and how open the mouth in it is."""

    position: float
    openness: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Shares of the intervals judged, and how many there were."""

    closed: float
    """Bilabials with the mouth closed in most of their frames."""
    bilabials: int
    opened: float
    """Open vowels with the mouth open in at least one frame."""
    vowels: int
    resting: float
    """Frames inside silences with the mouth at rest."""
    silent_frames: int


def watch(pictures: Iterable[Image], positions: Sequence[float]) -> list[Seen]:
    """What is seen in pictures drawn for these positions."""
    return [Seen(p, openness(picture)) for p, picture in zip(positions, pictures, strict=True)]


def judge(seen: Sequence[Seen], phonemes: Sequence[Phoneme]) -> Verdict:
    """Phonemes on the same axis as the frames' positions."""

    def during(start: float, end: float) -> list[float]:
        return [frame.openness for frame in seen if start <= frame.position < end]

    closed = [median(frames) <= CLOSED for p in bilabials(phonemes) if (frames := during(p.start, p.end))]
    opened = [max(frames) >= OPEN for start, end in open_vowels(phonemes) if (frames := during(start, end))]
    resting = [value <= AT_REST for start, end in silences(phonemes) for value in during(start, end)]
    return Verdict(_share(closed), len(closed), _share(opened), len(opened), _share(resting), len(resting))


def lag(seen: Sequence[Seen], phonemes: Sequence[Phoneme]) -> float:
    """Seconds by which the mouth is behind the phonemes; the shift with which open vowels, bilabials and
    silences tell most of how open it is. Drift is how this changes in the course of a call."""
    begin, end = phonemes[0].start, phonemes[-1].end
    frames = [frame for frame in seen if begin <= frame.position < end]
    opening = np.array([frame.openness for frame in frames])
    at = np.array([frame.position for frame in frames])
    spans = [(start, stop, 1.0) for start, stop in open_vowels(phonemes)]
    spans += [(p.start, p.end, 0.0) for p in bilabials(phonemes)]
    spans += [(start, stop, 0.0) for start, stop in silences(phonemes)]

    def fit(shift: float) -> float:
        expected = np.full(len(at), np.nan)
        for start, stop, value in spans:
            expected[(start + shift <= at) & (at < stop + shift)] = value
        known = ~np.isnan(expected)
        return float(np.corrcoef(expected[known], opening[known])[0, 1])

    return float(max(np.arange(-0.3, 0.301, 0.01), key=fit))


def bilabials(phonemes: Sequence[Phoneme]) -> Iterator[Phoneme]:
    """Those of p, b, m that are long enough to be judged."""
    return (p for p in phonemes if p.symbol in BILABIALS and p.end - p.start >= SHORTEST_JUDGED_S - 1e-6)


def open_vowels(phonemes: Sequence[Phoneme]) -> Iterator[tuple[float, float]]:
    """Start and end of open vowels, with the stress mark before and the length mark after."""
    padded = [None, *phonemes, None]
    for before, vowel, after in zip(padded, phonemes, padded[2:], strict=False):
        if vowel.symbol in OPEN_VOWELS:
            start = before.start if before and before.symbol in STRESS else vowel.start
            end = after.end if after and after.symbol == "ː" else vowel.end
            if end - start >= SHORTEST_JUDGED_S - 1e-6:
                yield start, end


def silences(phonemes: Sequence[Phoneme]) -> Iterator[tuple[float, float]]:
    """The quiet inner part of pauses long enough to have one."""
    sounds = [p for p in phonemes if p.symbol not in SILENT]
    for before, after in pairwise(sounds):
        if after.start - before.end >= SHORTEST_SILENCE_S:
            yield before.end + SILENCE_MARGIN_S, after.start - SILENCE_MARGIN_S


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else 0.0
