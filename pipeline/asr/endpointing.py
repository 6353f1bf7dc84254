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
    """A turn is ended after this long even without silence: Whisper's window."""


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


class Endpointing:
    """Feed it every window in order; it says when something changed.

    `speech_started` and `speech_ended` estimate the first and last voiced moment of the utterance
    to a window's precision.
    """

    _HYSTERESIS = 0.15

    def __init__(self, settings: EndpointingSettings) -> None:
        self._settings = settings
        self._state = _State.SILENT
        self._run_started: float | None = None
        self.speech_started: float | None = None
        self.speech_ended: float | None = None

    def observe(self, probability: float, start: float, end: float) -> Mark | None:
        """A window from `start` to `end` holds speech with this probability."""
        speaking = self._state is not _State.SILENT and self._run_started is not None
        limit = self._settings.threshold - (self._HYSTERESIS if speaking else 0.0)
        if probability >= limit:
            return self._voiced(start, end)
        self._run_started = None
        return self._unvoiced(end)

    def _voiced(self, start: float, end: float) -> Mark | None:
        settings = self._settings
        if self._run_started is None:
            self._run_started = start
        if self._state is _State.SPEAKING:
            self.speech_ended = end
            assert self.speech_started is not None
            return self._end() if end - self.speech_started >= settings.max_utterance else None
        # Rounding of clock values must not cost a whole window.
        if end - self._run_started < settings.onset - 1e-3:
            return None
        mark = Mark.RESUMED if self._state is _State.PAUSED else Mark.ONSET
        if mark is Mark.ONSET:
            self.speech_started = self._run_started
        self._state = _State.SPEAKING
        self.speech_ended = end
        return mark

    def _unvoiced(self, end: float) -> Mark | None:
        if self._state is _State.SILENT:
            return None
        assert self.speech_ended is not None
        silence = end - self.speech_ended
        if self._state is _State.SPEAKING and silence >= self._settings.pause - 1e-3:
            self._state = _State.PAUSED
            return Mark.PAUSE
        if self._state is _State.PAUSED and silence >= self._settings.endpoint - 1e-3:
            return self._end()
        return None

    def _end(self) -> Mark:
        self._state = _State.SILENT
        self._run_started = None
        return Mark.END
