"""A clause in pieces of whole words, the first one short: it is heard while the next one is made."""

import math
from collections.abc import AsyncIterable, Iterable
from dataclasses import replace

import numpy as np
import soxr

from pipeline.events import WIRE_RATE, Pcm, Phoneme, Samples, SpeechChunk, Word
from pipeline.tts.script import Script

SHORTEST = 0.25
"""Least seconds of speech in a piece, and in what is left after it."""

SHORTEST_SHARED = 0.6
"""The same while other conversations want the processor: the next piece comes later then. Four callers, 72
turns: four gaps of 40 to 230 ms after first pieces of 0.26 to 0.3 s."""

GROWTH = 3
"""A piece is at least this many times as long as the one before. Pieces may then come out at up to a
sixth of the pace of speech, and no gap opens; en_US-joe runs at a fifteenth on one core. Each cut
costs the decoder 2 × DECODER_REACH frames and the flow 2 × FLOW_REACH, together 22 ms (measured)."""

RESAMPLER_REACH = 96
"""Samples to either side that soxr's "HQ" looks at. Measured from 22.05 to 48 kHz: with 64 around a
piece it differs from the whole by −132 dB of the peak, with 32 by −69 dB."""


def cuts(
    ends: Iterable[tuple[int, float]], start: float, stop: float, shortest: float = SHORTEST
) -> list[int]:
    """Which symbols to cut at, given where words end: (symbol, seconds), in order.

    Speech begins at `start`, and all of it ends at `stop`; the first piece lasts `shortest` seconds at least.
    """
    chosen: list[int] = []
    least = shortest
    for symbol, at in ends:
        if at - start >= least and stop - at >= least:
            chosen.append(symbol)
            least, start = GROWTH * (at - start), at
    return chosen


async def whole(pieces: AsyncIterable[SpeechChunk]) -> SpeechChunk:
    """All pieces of a clause as one chunk, for a line that is prepared ahead."""
    gathered = [piece async for piece in pieces]
    starts = np.cumsum([0, *(len(piece.pcm) for piece in gathered)]) / gathered[0].sample_rate
    return SpeechChunk(
        text=" ".join(piece.text for piece in gathered),
        pcm=np.concatenate([piece.pcm for piece in gathered]),
        sample_rate=gathered[0].sample_rate,
        phonemes=[
            replace(phoneme, start=phoneme.start + start, end=phoneme.end + start)
            for piece, start in zip(gathered, starts, strict=False)
            for phoneme in piece.phonemes
        ],
        words=[
            replace(word, start=word.start + start, end=word.end + start)
            for piece, start in zip(gathered, starts, strict=False)
            for word in piece.words
        ],
        aligned=all(piece.aligned for piece in gathered),
    )


class PieceCutter:
    """Cuts a clause's audio, as far as it is spoken, into chunks at WIRE_RATE that adjoin exactly."""

    def __init__(self, script: Script, rate: int) -> None:
        self._script = script
        self._rate = rate
        self._speech: Samples = np.zeros(0, np.float32)
        self._spans: list[tuple[int, int]] = []
        self._symbols = [symbol for line in script.lines for symbol in line.symbols]
        self._cut_at = self._cut_symbols = self._cut_words = 0

    @property
    def length(self) -> int:
        """Samples so far, at the voice's rate."""
        return len(self._speech)

    def add(self, samples: Samples) -> None:
        """More audio at the voice's rate."""
        self._speech = np.concatenate((self._speech, samples))

    def place(self, spans: Iterable[tuple[int, int]]) -> None:
        """Where the next symbols lie in the audio, in samples."""
        self._spans += spans

    def cut(self, stop: int, *, aligned: bool) -> SpeechChunk:
        """Everything since the last cut that was placed, with the audio up to sample `stop`."""
        start_symbol, stop_symbol = self._cut_symbols, len(self._spans)
        begin, end = self._on_wire(self._cut_at), self._on_wire(stop)
        duration = (end - begin) / WIRE_RATE

        def seconds(sample: int) -> float:
            return min(max(0.0, sample / self._rate - begin / WIRE_RATE), duration)

        done = stop_symbol == len(self._symbols)
        words = self._words(stop_symbol, done=done)
        chunk = SpeechChunk(
            text=" ".join(self._script.words[index] for index in words),
            pcm=self._resampled(stop, begin, end),
            sample_rate=WIRE_RATE,
            phonemes=[
                Phoneme(self._symbols[at], seconds(self._spans[at][0]), seconds(self._spans[at][1]))
                for at in range(start_symbol, stop_symbol)
            ],
            words=[
                Word(self._script.words[index], *map(seconds, self._span(*self._script.spans[index])))
                for index in words
            ],
            aligned=aligned,
        )
        self._cut_at, self._cut_symbols, self._cut_words = stop, stop_symbol, words.stop
        return chunk

    def _words(self, stop_symbol: int, *, done: bool) -> range:
        spans = self._script.spans
        stop = self._cut_words
        while stop < len(spans) and (done or (spans[stop][0] < stop_symbol >= spans[stop][1])):
            stop += 1
        return range(self._cut_words, stop)

    def _span(self, first: int, stop: int) -> tuple[int, int]:
        start = self._spans[first][0] if first < len(self._spans) else self._spans[-1][1]
        return start, max(start, self._spans[stop - 1][1]) if stop > first else start

    def _on_wire(self, sample: int) -> int:
        return round(sample * WIRE_RATE / self._rate)

    def _resampled(self, stop: int, begin: int, end: int) -> Pcm:
        """The audio up to sample `stop`, as samples `begin` to `end` at WIRE_RATE."""
        # Only every so many samples, 147 at 22.05 kHz, do samples of the two rates coincide.
        step = self._rate // math.gcd(self._rate, WIRE_RATE)
        first = max(0, self._cut_at - RESAMPLER_REACH) // step * step
        offset = self._on_wire(first)
        wire = soxr.resample(self._speech[first : stop + RESAMPLER_REACH], self._rate, WIRE_RATE)
        loudest = np.iinfo(np.int16).max
        pcm: Pcm = np.clip(wire[begin - offset : end - offset] * loudest, -loudest - 1, loudest).astype(
            np.int16
        )
        return pcm
