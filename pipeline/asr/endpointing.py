"""Where speech starts, pauses and ends: a policy fed with probabilities and times, no I/O."""

from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class EndpointingSettings:
    """Times in seconds."""

    threshold: float = 0.5
    """Speech probability that counts as speech; it stays speech down to 0.15 below (Silero's own)."""
    onset: float = 0.096
    """Speech for this long is an onset: three windows, so that a click is not one."""
    pause: float = 0.2
    """Silence after which work on the speech so far starts."""
    endpoint: float = 0.5
    """Silence after which the turn is over."""
    max_utterance: float = 30.0
    """A turn is ended after this long even without silence: Whisper's window. The next one begins only
    after a pause, so that an endless talker, or a television, gets an answer now and then."""


_ROUNDING = 1e-3
"""Rounding of times must not cost a whole window."""


class Mark(Enum):
    """What the newest window decided."""

    ONSET = auto()
    PAUSE = auto()
    RESUMED = auto()
    END = auto()


class _State(Enum):
    SILENT = auto()
    SPEAKING = auto()
    PAUSED = auto()
    EXHAUSTED = auto()
    """The turn was ended in the middle of speech; what goes on is not heard until the turn is settled
    (`release`) and a pause has come."""


class Endpointing:
    """Feed it every window in order; it says when something changed.

    `run_started` is when the newest run of speech began, `speech_ended` when speech was last heard,
    both to a window's precision.
    """

    _HYSTERESIS = 0.15

    def __init__(self, settings: EndpointingSettings) -> None:
        self._settings = settings
        self._state = _State.SILENT
        self._in_run = False
        self._released = True
        self._utterance_started = 0.0
        self.run_started = 0.0
        self.speech_ended = 0.0

    def release(self) -> None:
        """What became of the last turn is settled; a turn ended in mid-speech may be followed."""
        self._released = True

    def observe(self, probability: float, start: float, end: float) -> Mark | None:
        """A window from `start` to `end` holds speech with this probability."""
        speaking = self._state is not _State.SILENT and self._in_run
        limit = self._settings.threshold - (self._HYSTERESIS if speaking else 0.0)
        return self._voiced(start, end) if probability >= limit else self._unvoiced(end)

    def _voiced(self, start: float, end: float) -> Mark | None:
        if not self._in_run:
            self._in_run = True
            self.run_started = start
        if self._state is _State.EXHAUSTED:
            self.speech_ended = end
            return None
        if self._state is _State.SPEAKING:
            self.speech_ended = end
            if end - self._utterance_started < self._settings.max_utterance:
                return None
            self._state = _State.EXHAUSTED
            self._released = False
            return Mark.END
        if end - self.run_started < self._settings.onset - _ROUNDING:
            return None
        mark = Mark.RESUMED if self._state is _State.PAUSED else Mark.ONSET
        if mark is Mark.ONSET:
            self._utterance_started = self.run_started
        self._state = _State.SPEAKING
        self.speech_ended = end
        return mark

    def _unvoiced(self, end: float) -> Mark | None:
        self._in_run = False
        silence = end - self.speech_ended
        paused = silence >= self._settings.pause - _ROUNDING
        if self._state is _State.EXHAUSTED and paused and self._released:
            self._state = _State.SILENT
        if self._state is _State.SPEAKING and paused:
            self._state = _State.PAUSED
            return Mark.PAUSE
        if self._state is _State.PAUSED and silence >= self._settings.endpoint - _ROUNDING:
            self._state = _State.SILENT
            return Mark.END
        return None
