"""A reply on its way to the ear: a bounded queue of speech that may wait, silent, for its turn's commit.

*Audio position* p is seconds of the reply's own audio, underruns not counted: the face is drawn for it
and captions follow it. It goes back when an interrupted word is said again.
"""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.events import WIRE_RATE, Pcm, SpeechChunk

MAX_AHEAD = 10.0
"""Seconds of speech a reply may be ahead of the ear; its synthesis waits when it is."""


@dataclass(frozen=True, slots=True)
class HeardWord:
    """A word and where it lies in the reply, in seconds of audio position."""

    text: str
    start: float
    end: float
    own: bool
    """False for a greeting, a filler or an apology: it is not what the model said."""

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2


class Reply:
    """The audio of one reply, played or not. Of what was played it keeps no more than the chunk it is in."""

    def __init__(self) -> None:
        self._chunks: deque[Pcm] = deque()
        """From the one that holds the next sample on."""
        self._first = 0
        """Where the first of them begins, in samples of the reply."""
        self._played = 0
        self._queued = 0
        self._words: list[HeardWord] = []
        self._complete = False
        self._stopped = False
        self._room = asyncio.Event()
        self._room.set()
        self.started = asyncio.Event()
        """The first sample went out."""
        self.done = asyncio.Event()
        """The last sample went out, or the reply was stopped."""

    @property
    def position(self) -> float:
        """The audio position of the next sample to go out."""
        return self._played / WIRE_RATE

    @property
    def duration(self) -> float:
        """Seconds of audio added so far."""
        return self._queued / WIRE_RATE

    @property
    def words(self) -> Sequence[HeardWord]:
        """The words added so far, in order."""
        return self._words

    def heard_text(self, position: float | None = None) -> str:
        """The reply's own words that were heard, at least half of each, up to an audio position.

        Without one: up to what went out.
        """
        heard = (self.position if position is None else position) + 1e-6
        return " ".join(word.text for word in self._words if word.own and word.middle <= heard)

    async def add(self, chunk: SpeechChunk, *, own: bool = True) -> float | None:
        """Queue a chunk; its audio position. Waits while MAX_AHEAD is queued already.

        None when the reply was stopped, also while it waited: the chunk is dropped.
        """
        if chunk.sample_rate != WIRE_RATE:
            raise ValueError(f"speech for the wire has {WIRE_RATE} Hz, got {chunk.sample_rate}")
        if self._complete and not self._stopped:
            raise ValueError("the reply is complete; nothing can be added to it")
        await self._room.wait()
        if self._stopped:
            return None
        start = self.duration
        self._chunks.append(chunk.pcm)
        self._queued += len(chunk.pcm)
        self._words += [
            HeardWord(word.text, start + word.start, start + word.end, own) for word in chunk.words
        ]
        self._note_room()
        return start

    def complete(self) -> None:
        """No more chunks will come."""
        self._complete = True
        if self._played >= self._queued:
            self.done.set()

    def stop(self) -> None:
        """Forget what was not played."""
        self._complete = self._stopped = True
        self._chunks.clear()
        self._queued = self._first = self._played
        self._room.set()
        self.done.set()

    def peek(self, count: int) -> Pcm:
        """The next samples, fewer when there are no more for now; they stay where they are."""
        pieces: list[Pcm] = []
        offset = self._played - self._first
        for chunk in self._chunks:
            piece = chunk[offset : offset + count]
            pieces.append(piece)
            offset = 0
            count -= len(piece)
            if not count:
                break
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def take(self, count: int) -> Pcm:
        """The next samples, fewer when there are no more for now: they go out."""
        pcm = self.peek(count)
        self._played += len(pcm)
        while self._chunks and self._first + len(self._chunks[0]) <= self._played:
            self._first += len(self._chunks.popleft())
        if len(pcm):
            self.started.set()
        if self._complete and self._played >= self._queued:
            self.done.set()
        self._note_room()
        return pcm

    def rewind(self) -> None:
        """Go back to the start of the word that is only half out; between words, stay."""
        begun = bisect_left(self._words, self._played, key=lambda word: round(word.start * WIRE_RATE))
        if begun == 0:
            return
        word = self._words[begun - 1]
        if self._played < round(word.end * WIRE_RATE):
            # A word's times are rounded and may reach past its chunk, which is gone once it is out.
            self._played = max(self._first, round(word.start * WIRE_RATE))
            self._note_room()

    def _note_room(self) -> None:
        if self.duration - self.position < MAX_AHEAD:
            self._room.set()
        else:
            self._room.clear()
