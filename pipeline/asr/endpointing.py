"""Where speech stirs, starts, pauses and ends: fed with probabilities and times, no I/O."""

from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class EndpointingSettings:
    """Times in seconds."""

    threshold: float = 0.5
    """Speech probability that counts as speech; it stays speech down to 0.15 below (Silero's own)."""
    stir: float = 0.064
    """Speech for this long may be an onset: two windows, so that a click is nothing. After a pause it is
    enough to go on."""
    onset: float = 0.128
    """Speech for this long is an onset."""
    pause: float = 0.032
    """Silence after which work on the speech so far starts: one window. Most such pauses are none, and what
    was begun in them is dropped; but it starts 32 ms sooner than after two."""
    longest: float = 1.0
    """Silence after which a turn is over whatever anybody thinks; `judged` makes it shorter."""
    max_utterance: float = 30.0
    """A turn is ended after this long even without silence: Whisper's window. The next one begins only
    after a pause, so that an endless talker, or a television, gets an answer now and then."""


_NEXT_SENTENCE = 0.6
"""Seconds of silence after which speech is taken for something new that follows what does not count."""

_ROUNDING = 1e-3
"""Rounding of times must not cost a whole window."""


class Mark(Enum):
    """What the newest window decided."""

    STIR = auto()
    STILL = auto()
    """What stirred was no speech."""
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
    (`release`) and a pause has come, a long one after what does not count (`abandon`)."""


class Endpointing:
    """Feed it every window in order; it says when something changed.

    `run_started` is when the newest run of speech began, `speech_ended` when speech was last heard,
    both to a window's precision; `voiced` is how many seconds of the utterance were speech.
    """

    _HYSTERESIS = 0.15

    def __init__(self, settings: EndpointingSettings) -> None:
        self._settings = settings
        self._state = _State.SILENT
        self._in_run = False
        self._stirring = False
        self._released = True
        self._patience = settings.longest
        self._rest = settings.pause
        self._utterance_started = 0.0
        self.run_started = 0.0
        self.speech_ended = 0.0
        self.voiced = 0.0

    @property
    def speaking(self) -> bool:
        return self._state is _State.SPEAKING

    def release(self) -> None:
        """What became of the last turn is settled; a turn ended in mid-speech may be followed."""
        self._released = True

    def abandon(self) -> None:
        """What is being said, if anything is, does not count, nor what goes on of it."""
        if self._state is not _State.SILENT or self._in_run:
            self._state = _State.EXHAUSTED
            self._released, self._rest = True, _NEXT_SENTENCE
        self._stirring = False

    def judged(self, patience: float, now: float) -> Mark | None:
        """The present pause ends the turn once it has lasted `patience` seconds; END when it has."""
        if self._state is not _State.PAUSED:
            return None
        self._patience = min(patience, self._settings.longest)
        return None if self._in_run else self._ended(now)

    def observe(self, probability: float, start: float, end: float) -> Mark | None:
        """A window from `start` to `end` holds speech with this probability."""
        speaking = self._state is not _State.SILENT and self._in_run
        limit = self._settings.threshold - (self._HYSTERESIS if speaking else 0.0)
        return self._voiced(start, end) if probability >= limit else self._unvoiced(end)

    def _voiced(self, start: float, end: float) -> Mark | None:
        if not self._in_run:
            self._in_run = True
            self.run_started = start
        run = end - self.run_started + _ROUNDING
        match self._state:
            case _State.EXHAUSTED:
                self.speech_ended = end
            case _State.SPEAKING:
                self.speech_ended = end
                self.voiced += end - start
                if end - self._utterance_started >= self._settings.max_utterance:
                    self._state = _State.EXHAUSTED
                    self._released, self._rest = False, self._settings.pause
                    return Mark.END
            case _State.PAUSED if run >= self._settings.stir:
                return self._speak(Mark.RESUMED, end)
            case _State.SILENT if run >= self._settings.onset:
                self._utterance_started = self.run_started
                self.voiced = 0.0
                return self._speak(Mark.ONSET, end)
            case _State.SILENT if run >= self._settings.stir and not self._stirring:
                self._stirring = True
                return Mark.STIR
        return None

    def _speak(self, mark: Mark, end: float) -> Mark:
        self._state = _State.SPEAKING
        self._stirring = False
        self.voiced += end - self.run_started
        self.speech_ended = end
        return mark

    def _unvoiced(self, end: float) -> Mark | None:
        self._in_run = False
        silence = end - self.speech_ended + _ROUNDING
        paused = silence >= self._settings.pause
        match self._state:
            case _State.SILENT if self._stirring:
                self._stirring = False
                return Mark.STILL
            case _State.EXHAUSTED if silence >= self._rest and self._released:
                self._state = _State.SILENT
            case _State.SPEAKING if paused:
                self._state = _State.PAUSED
                self._patience = self._settings.longest
                return Mark.PAUSE
            case _State.PAUSED:
                return self._ended(end)
        return None

    def _ended(self, now: float) -> Mark | None:
        if now - self.speech_ended < self._patience - _ROUNDING:
            return None
        self._state = _State.SILENT
        return Mark.END
