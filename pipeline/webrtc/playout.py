"""What goes out, 20 ms at a time: silence, or one reply, ducked, held and resumed.

The audio track asks for frames in real time, so what is ahead stays in the `Reply`, where an
interruption can still take it back. Every change of level is a ramp inside the next frame: a cut clicks.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import numpy as np

from pipeline.clock import Clock
from pipeline.events import WIRE_RATE, Pcm
from pipeline.webrtc.reply import HeardWord, Reply

FRAME = WIRE_RATE // 50
"""Samples in the 20 ms that go into one RTP packet."""

FRAME_SECONDS = FRAME / WIRE_RATE

_RAMP = WIRE_RATE // 100
"""Samples from one level to another: 10 ms."""


class _Level(Enum):
    """How loud the reply goes out, as a factor."""

    FULL = 1.0
    DUCKED = 0.1
    """−20 dB: the user is heard over it, and it is not lost."""
    HELD = 0.0


class PlayoutListener(Protocol):
    """Told, on the event loop, about what goes out."""

    def reply_started(self, reply: Reply) -> None:
        """The reply's first sample goes out."""

    def word_started(self, reply: Reply, word: HeardWord) -> None:
        """The word's first sample goes out, for the first time."""


class Playout:
    """Plays at most one reply. What cannot be done in its state, such as to resume what is not held, is
    no error and does nothing."""

    def __init__(
        self, clock: Clock, listener: PlayoutListener, on_frame: Callable[[Pcm], None] | None = None
    ) -> None:
        """`on_frame` is given each frame that goes out, silence too: what an echo would be made of."""
        self._clock = clock
        self._listener = listener
        self._on_frame = on_frame
        self._reply: Reply | None = None
        self._level = _Level.FULL
        self._gain = _Level.FULL.value
        """The level the last frame ended with."""
        self._sounding = False
        """The last frame ended with speech."""
        self._tail: Pcm | None = None
        """The end of a reply that was stopped."""
        self._announced = False
        self._told = 0
        self._span: tuple[float, float] | None = None
        self._span_at = 0.0

    @property
    def span(self) -> tuple[float, float] | None:
        """Between which audio positions the last frame lies; None when it was silence or dying away."""
        return self._span

    def play(self, reply: Reply) -> None:
        """Play a reply, in place of any other."""
        self.stop()
        self._reply = reply
        self._level = _Level.FULL
        self._gain = _Level.FULL.value
        self._announced = False
        self._told = 0

    def duck(self) -> None:
        """Go on more quietly, unless held."""
        if self._level is _Level.FULL:
            self._level = _Level.DUCKED

    def unduck(self) -> None:
        """Go on at full level, if ducked."""
        if self._level is _Level.DUCKED:
            self._level = _Level.FULL

    def hold(self) -> None:
        """Fall silent within 10 ms and keep the rest of the reply."""
        self._level = _Level.HELD

    def resume(self) -> None:
        """Go on at full level with the start of the interrupted word, or where it was between words."""
        if self._level is not _Level.HELD:
            return
        self._level = _Level.FULL
        if self._reply is not None and self._gain == 0.0:
            self._reply.rewind()

    def stop(self) -> None:
        """Fall silent within 10 ms and forget the reply."""
        if self._reply is None:
            return
        if self._sounding:
            self._tail = _ramped(_frame(self._reply.peek(_RAMP)), self._gain, 0.0)
        self._reply.stop()
        self._reply = None
        self._sounding = False

    def next_frame(self) -> Pcm:
        """The FRAME samples to send now."""
        self._span = None
        if self._tail is not None:
            frame, self._tail = self._tail, None
        elif self._reply is None:
            frame = _frame()
        elif self._level is _Level.HELD:
            frame = self._dying_away(self._reply)
        else:
            frame = self._speaking(self._reply)
        if self._on_frame is not None:
            self._on_frame(frame)
        return frame

    def position(self, now: float) -> float | None:
        """The audio position that goes out at `now`; None in silence."""
        if self._span is None:
            return None
        start, end = self._span
        return min(start + max(0.0, now - self._span_at), end)

    def _speaking(self, reply: Reply) -> Pcm:
        start = reply.position
        pcm = reply.take(FRAME)
        self._sounding = len(pcm) == FRAME
        if len(pcm):
            self._span, self._span_at = (start, reply.position), self._clock.now()
            if not self._announced:
                self._announced = True
                self._listener.reply_started(reply)
        self._tell(reply)
        return self._levelled(_frame(pcm))

    def _dying_away(self, reply: Reply) -> Pcm:
        # The reply stays where it is: what dies away here is said again, and it is not done before.
        fading = reply.peek(_RAMP) if self._sounding else None
        self._sounding = False
        return self._levelled(_frame(fading))

    def _levelled(self, frame: Pcm) -> Pcm:
        before, self._gain = self._gain, self._level.value
        return _ramped(frame, before, self._gain)

    def _tell(self, reply: Reply) -> None:
        while self._told < len(reply.words) and reply.words[self._told].start < reply.position:
            self._told += 1
            self._listener.word_started(reply, reply.words[self._told - 1])


def _frame(pcm: Pcm | None = None) -> Pcm:
    """Samples, and silence up to a whole frame."""
    frame = np.zeros(FRAME, np.int16)
    if pcm is not None:
        frame[: len(pcm)] = pcm
    return frame


def _ramped(frame: Pcm, before: float, after: float) -> Pcm:
    """A frame that goes from one level to another in its first 10 ms."""
    if before == after == _Level.FULL.value:
        return frame
    gains = np.full(FRAME, after)
    gains[:_RAMP] = np.linspace(before, after, _RAMP)
    return np.asarray(frame * gains, np.int16)
