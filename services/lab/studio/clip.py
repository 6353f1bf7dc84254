"""What passes between a benchmark and the process that makes its speech."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clip:
    """A WAV file that was written. `boundaries[k]` is the sample between word k and the next; empty
    when they were not asked for, or the recogniser did not find the words that were to be said."""

    wav: str
    voice: str
    words: list[str]
    boundaries: list[int]
    limit: float
    """dBFS above which it is voiced. A clip is nearly all speech, so its own noise floor does not show."""
