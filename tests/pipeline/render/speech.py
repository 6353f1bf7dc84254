"""Speech for tests: phonemes with given times, as chunks, and as frames of a performance."""

import random
from collections.abc import Sequence

import numpy as np

from pipeline.events import Mood, Phoneme, Pose, SpeechChunk
from pipeline.render.performance import Performance

RATE = 22_050
FRAME_S = 0.04

SAMPLE = (
    "^50 ·30 p60 ˈ50 ɑ60 ː40 p55 ɐ45 ·55 b60 ˈ60 ɔ70 t45 ·40 m55 ˈ55 æ75 p60 s55 ·45 f60 ɔ60 ː50 ɹ40 ·50"
    " m65 ˈ60 ɑ55 ː45 m70 ɐ60 ,120 ·160 æ70 n40 d40 ·45 ð45 ə40 ·55 b70 ˈ70 a70 ɪ60 ·60 m60 ə40 b55 ˈ50 a60"
    " ʊ50 t55 ·50 k60 ˈ60 æ80 b55 ·60 p55 ˈ50 ɔ80 ː50 ɹ50 .140 ·220 w60 ʌ70 n60 ·50 b55 ˈ65 æ70 m65 b50 u60"
    " ː40 ·40 θ70 ˈ55 ɔ80 ː50 t60 .120 $60"
)
"""Bilabials, open vowels and pauses, in a slow speaker's durations."""


def phonemes(notation: str, start: float = 0.0) -> list[Phoneme]:
    """`"p60 ˈ50 ɑ60 ·30"` as phonemes: symbols with their milliseconds; · is the space between words."""
    result: list[Phoneme] = []
    for item in notation.split():
        symbol, milliseconds = item[0].replace("·", " "), int(item[1:])
        result.append(Phoneme(symbol, start, start + milliseconds / 1000))
        start = result[-1].end
    return result


def chunk(spoken: Sequence[Phoneme], text: str = "…") -> SpeechChunk:
    """A chunk of steady noise with these phonemes, which start at 0."""
    samples = round(spoken[-1].end * RATE)
    noise = np.random.default_rng(0).normal(0, 5_000, samples)
    return SpeechChunk(text, np.clip(noise, -32_767, 32_767).astype(np.int16), RATE, spoken, [])


def shuffled(spoken: Sequence[Phoneme], seed: int) -> list[Phoneme]:
    """The same symbols and the same times, but not together."""
    symbols = [phoneme.symbol for phoneme in spoken]
    random.Random(seed).shuffle(symbols)
    return [Phoneme(symbol, p.start, p.end) for symbol, p in zip(symbols, spoken, strict=True)]


def perform(spoken: Sequence[Phoneme], phase: float = 0.0, seed: int = 1) -> tuple[list[float], list[Pose]]:
    """The audio positions of frames at 25 a second, and the poses for them."""
    performance = Performance(seed)
    performance.cue(chunk(spoken), 0.0)
    positions = list(np.arange(phase, spoken[-1].end, FRAME_S))
    return positions, [performance.pose(1_000 + p, p, Mood.SPEAKING) for p in positions]
