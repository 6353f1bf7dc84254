"""What is being said, laid out on the reply's audio-position axis."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.events import Phoneme, SpeechChunk
from pipeline.render.settling import settle
from pipeline.render.visemes import VisemeSpan, viseme_spans

_BEAT_HALF_S = 0.16
"""A beat gesture rises and falls about this long around the stressed vowel's middle."""

_LOUDNESS_WINDOW_S = 0.02

_SEAM_S = 0.001
"""Phonemes of two chunks that are no further apart are one stretch of speech, cut between words."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A stressed syllable, which heads and brows like to mark."""

    at: float
    """Middle of the vowel, seconds on the audio-position axis."""
    strength: float
    """0 … 1: how stressed, and how loud against the rest of its chunk."""


class SpeechTrack:
    """The chunks cued so far."""

    def __init__(self) -> None:
        self.unknown: Counter[str] = Counter()
        """Phoneme symbols that no viseme was known for, over the track's whole life."""
        self.spans: tuple[VisemeSpan, ...] = ()
        """What the mouth has to do; a new object whenever it changes."""
        self._beats: list[Beat] = []
        self._stretch: list[Phoneme] = []
        self._stretch_unknown: Counter[str] = Counter()

    def cue(self, chunk: SpeechChunk, at: float) -> None:
        """Add a chunk heard from `at` on; it replaces what was cued for that time and later.

        A chunk that goes on where the one before ended is joined to it: what is between two words
        does not depend on where the clause was cut.
        """
        phonemes = [replace(one, start=at + one.start, end=at + one.end) for one in chunk.phonemes]
        if not phonemes:
            return
        if not (self._stretch and abs(phonemes[0].start - self._stretch[-1].end) <= _SEAM_S):
            self._stretch, self._stretch_unknown = [], Counter()
        self._stretch += phonemes
        unknown: Counter[str] = Counter()
        spans = settle(viseme_spans(self._stretch, 0.0, unknown))
        self.unknown += unknown - self._stretch_unknown
        self._stretch_unknown = unknown
        begin = spans[0].start
        kept = [span for span in self.spans if span.start < begin]
        if kept and kept[-1].end > begin:
            kept[-1] = replace(kept[-1], end=begin)
        self.spans = (*kept, *spans)
        self._beats = [beat for beat in self._beats if beat.at < at] + _beats(spans, chunk, at)

    def clear(self) -> None:
        self.spans = ()
        self._beats = []
        self._stretch, self._stretch_unknown = [], Counter()

    def emphasis(self, position: float) -> float:
        """How much the sound at a position is stressed, rising and falling smoothly, 0 … 1."""
        first = bisect_left(self._beats, position - _BEAT_HALF_S, key=lambda beat: beat.at)
        strongest = 0.0
        for beat in self._beats[first:]:
            away = abs(beat.at - position) / _BEAT_HALF_S
            if beat.at - position > _BEAT_HALF_S:
                break
            strongest = max(strongest, beat.strength * (1.0 - away * away) ** 2)
        return strongest


def _beats(spans: Sequence[VisemeSpan], chunk: SpeechChunk, at: float) -> list[Beat]:
    """The beats in the chunk's own time."""
    window = max(1, round(_LOUDNESS_WINDOW_S * chunk.sample_rate))
    count = len(chunk.pcm) // window
    if not count:
        return []
    blocks = chunk.pcm[: count * window].astype(np.float32).reshape(count, window)
    loudness = np.sqrt(np.mean(blocks * blocks, axis=1))
    full = max(1.0, float(np.percentile(loudness, 95)))
    beats = []
    for span in spans:
        middle = (span.start + span.end) / 2
        if span.stress >= 1.0 and middle >= at:
            block = min(count - 1, max(0, int((middle - at) / _LOUDNESS_WINDOW_S)))
            beats.append(Beat(middle, min(1.0, float(loudness[block]) / full)))
    return beats
