"""What tests of the playout play, and who listens."""

import numpy as np

from pipeline.events import WIRE_RATE, Pcm, SpeechChunk, Word
from pipeline.webrtc.playout import Playout
from pipeline.webrtc.reply import HeardWord, Reply

RAMP = WIRE_RATE // 100
"""Samples from one level to another."""

SINE_PEAK, SINE_HZ = 10_000, 510
"""Not silent where frames end."""


class Notes:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.started: list[Reply] = []
        self.words: list[HeardWord] = []

    def reply_started(self, reply: Reply) -> None:
        self.started.append(reply)

    def word_started(self, reply: Reply, word: HeardWord) -> None:
        self.words.append(word)


def speech(pcm: Pcm, *words: tuple[str, float, float]) -> SpeechChunk:
    return SpeechChunk("", pcm, WIRE_RATE, (), tuple(Word(*word) for word in words))


def sine(seconds: float) -> Pcm:
    """Begins and ends with no step if it lasts a multiple of 0.1 s."""
    times = np.arange(round(seconds * WIRE_RATE)) / WIRE_RATE
    return (SINE_PEAK * np.sin(2 * np.pi * SINE_HZ * times)).astype(np.int16)


def counting(count: int, first: int = 0) -> Pcm:
    """Samples that tell where they lie."""
    return np.arange(first + 1, first + count + 1).astype(np.int16)


async def speak(*clauses: SpeechChunk) -> Reply:
    """A complete reply."""
    reply = Reply()
    for clause in clauses:
        await reply.add(clause)
    reply.complete()
    return reply


def frames(playout: Playout, count: int) -> Pcm:
    """What goes out in so many frames."""
    return np.concatenate([playout.next_frame() for _ in range(count)])
