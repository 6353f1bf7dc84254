"""Replies on their way to the ear: bounded queues of speech, played out 20 ms at a time.

A `Reply` is filled ahead of time and may wait, silent, until its turn is committed. `Playout` plays at
most one reply; the audio track asks it for frames in real time, so what is ahead stays here, where an
interruption can still take it back. *Audio position* p is seconds of the reply's own audio, underruns
not counted: the face is drawn for it and captions follow it.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipeline.clock import Clock
from pipeline.events import WIRE_RATE, Pcm, SpeechChunk

FRAME = WIRE_RATE // 50
"""Samples in the 20 ms that go into one RTP packet."""

FRAME_SECONDS = FRAME / WIRE_RATE

_FADE = np.linspace(1.0, 0.0, WIRE_RATE // 100, dtype=np.float32)
"""10 ms: a cut without it clicks."""

MAX_AHEAD = 10.0
"""Seconds of speech a reply may be ahead of the ear; its synthesis waits when it is."""


@dataclass(frozen=True, slots=True)
class HeardWord:
    """A word and where it lies in the reply, in seconds of audio position."""

    text: str
    start: float
    end: float
    own: bool
    """False for an apology: it is not what the model said."""


class Reply:
    """The audio of one reply, played or not."""

    def __init__(self) -> None:
        self._pcm: list[Pcm] = []
        self._words: list[HeardWord] = []
        self._played = 0
        self._queued = 0
        self._complete = False
        self._stopped = False
        self._room = asyncio.Event()
        self._room.set()
        self.underruns = 0
        self.started = asyncio.Event()
        """The first sample went out."""
        self.done = asyncio.Event()
        """The last sample went out, or the reply was stopped."""

    @property
    def position(self) -> float:
        """Seconds of the reply's audio that went out."""
        return self._played / WIRE_RATE

    @property
    def duration(self) -> float:
        """Seconds of audio added so far."""
        return self._queued / WIRE_RATE

    @property
    def words(self) -> list[HeardWord]:
        return list(self._words)

    def heard_text(self) -> str:
        """The reply's own words that went out whole."""
        heard = self.position + 1e-6
        return " ".join(word.text for word in self._words if word.own and word.end <= heard)

    async def add(self, chunk: SpeechChunk, *, own: bool = True) -> float | None:
        """Queue a clause; its audio position. Waits while MAX_AHEAD is queued already.

        None when the reply was stopped, also while it waited: the clause is dropped.
        """
        if chunk.sample_rate != WIRE_RATE:
            raise ValueError(f"speech for the wire has {WIRE_RATE} Hz, got {chunk.sample_rate}")
        if self._complete and not self._stopped:
            raise ValueError("the reply is complete; nothing can be added to it")
        await self._room.wait()
        if self._stopped:
            return None
        start = self.duration
        self._pcm.append(chunk.pcm)
        self._queued += len(chunk.pcm)
        self._words += [
            HeardWord(word.text, start + word.start, start + word.end, own) for word in chunk.words
        ]
        self._note_room()
        return start

    def complete(self) -> None:
        """No more clauses will come."""
        self._complete = True
        if self._played >= self._queued:
            self.done.set()

    def stop(self) -> None:
        """Forget what was not played."""
        self._complete = self._stopped = True
        self._pcm.clear()
        self._queued = self._played
        self._room.set()
        self.done.set()

    def take(self, count: int) -> Pcm:
        """The next samples, fewer when there are no more for now."""
        pieces: list[Pcm] = []
        missing = count
        while missing and self._pcm:
            piece = self._pcm[0][:missing]
            rest = self._pcm[0][missing:]
            if len(rest):
                self._pcm[0] = rest
            else:
                self._pcm.pop(0)
            pieces.append(piece)
            missing -= len(piece)
        self._played += count - missing
        if pieces:
            self.started.set()
        if missing and not self._complete and self.started.is_set():
            self.underruns += 1
        if self._complete and not self._pcm:
            self.done.set()
        self._note_room()
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def _note_room(self) -> None:
        if self.duration - self.position < MAX_AHEAD:
            self._room.set()
        else:
            self._room.clear()


class PlayoutListener(Protocol):
    """Told, on the event loop, about what goes out."""

    def reply_started(self, reply: Reply) -> None:
        """The reply's first sample goes out."""

    def word_started(self, reply: Reply, word: HeardWord) -> None:
        """The word's first sample goes out."""


class Playout:
    """What the audio track plays: silence, or one reply, which can be held and resumed."""

    def __init__(self, clock: Clock, listener: PlayoutListener) -> None:
        self._clock = clock
        self._listener = listener
        self._reply: Reply | None = None
        self._held = False
        self._fade_out: Pcm | None = None
        self._told = 0
        self._position = 0.0
        self._position_at: float | None = None

    def play(self, reply: Reply) -> None:
        """Play a reply, in place of any other."""
        self.stop()
        self._reply = reply
        self._held = False
        self._told = 0

    def hold(self) -> None:
        """Fall silent within 10 ms and keep the rest of the reply."""
        if self._reply is not None and not self._held:
            self._held = True
            self._fade_out = self._fading()

    def resume(self) -> None:
        """Go on where `hold` stopped."""
        self._held = False

    def stop(self) -> None:
        """Fall silent within 10 ms and forget the reply."""
        if self._reply is None:
            return
        if not self._held and not self._reply.done.is_set():
            self._fade_out = self._fading()
        self._reply.stop()
        self._reply = None
        self._held = False

    def next_frame(self) -> Pcm:
        """The FRAME samples to send now."""
        frame = np.zeros(FRAME, np.int16)
        self._position_at = None
        if self._fade_out is not None:
            frame[: len(self._fade_out)] = self._fade_out
            self._fade_out = None
        elif self._reply is not None and not self._held:
            self._position = self._reply.position
            pcm = self._reply.take(FRAME)
            frame[: len(pcm)] = pcm
            if len(pcm):
                self._position_at = self._clock.now()
                if self._position == 0.0:
                    self._listener.reply_started(self._reply)
            self._tell(self._reply)
        return frame

    def position(self, now: float) -> float | None:
        """The audio position that goes out at `now`; None in silence."""
        if self._position_at is None:
            return None
        return self._position + min(max(0.0, now - self._position_at), FRAME_SECONDS)

    def _fading(self) -> Pcm | None:
        if self._reply is None or not self._reply.started.is_set():
            return None
        pcm = self._reply.take(len(_FADE)).astype(np.float32)
        return (pcm * _FADE[: len(pcm)]).astype(np.int16)

    def _tell(self, reply: Reply) -> None:
        words = reply.words
        while self._told < len(words) and words[self._told].start < reply.position:
            self._listener.word_started(reply, words[self._told])
            self._told += 1
