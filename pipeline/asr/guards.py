"""Was that speech? Whisper writes fluent text for noise, coughs and music; these checks empty it.

faster-whisper's own checks sit in the part of the library that the short window goes around, so they
are made here, on the same three figures.
"""

import re
import zlib
from dataclasses import dataclass

_WORD = re.compile(r"[\w']+")
_WORDS_PER_SECOND = 5
"""Fast speech has 4 to 4.5."""

_LEAST_LOOP = 3
"""Different words; less said over and over ("no, no, no") is people's own."""


_DOUBTFUL = 0.6
"""No-speech probability from which a transcript must be likelier to be believed: Whisper's threshold."""

_LIKELY = -1.3
"""Mean log-probability that is likely enough then."""


@dataclass(frozen=True, slots=True)
class TranscriptGuards:
    """Limits outside of which a transcript is taken for noise.

    Measured with timestamps, whose tokens are less sure than words, so that log-probabilities are lower
    than Whisper's own limit of -1.0 supposes. 88 utterances of two voices and human speech, through Opus:
    no-speech probability up to 0.48, log-probability down to -1.36; in calls one question came to 0.73,
    and to -1.16 another time. 26 noises: coughs 0.70 to 0.77 with -1.8, melodies 0.96 with -0.87, hums and
    keys 0.83 and more with -1.2 and less. The limits were set on these and tried on no others.
    """

    max_no_speech_probability: float = 0.85
    min_mean_log_probability: float = -1.5
    """Natural log, mean over tokens."""
    max_compression_ratio: float = 2.4
    """Bytes of text over bytes of its zlib compression: loops compress well."""

    def reject(
        self,
        text: str,
        *,
        no_speech_probability: float,
        mean_log_probability: float,
        compression_ratio: float,
    ) -> str | None:
        """Why a transcript is not to be believed, or None."""
        if not any(character.isalnum() for character in text):
            return "no words"
        if no_speech_probability > self.max_no_speech_probability:
            return f"no-speech probability {no_speech_probability:.2f}"
        least = self.min_mean_log_probability
        if no_speech_probability > _DOUBTFUL:
            least = max(least, _LIKELY)
        if mean_log_probability < least:
            return f"mean log probability {mean_log_probability:.2f}"
        if compression_ratio > self.max_compression_ratio:
            return f"compression ratio {compression_ratio:.1f}"
        return None


def too_many_words(text: str, seconds: float) -> bool:
    """Whether nobody can have said this much in the time: "Yes" read as "Yes. Yes. Yes. Yes. Yes."."""
    return len(_WORD.findall(text)) > 1 + _WORDS_PER_SECOND * seconds


def compression_ratio(text: str) -> float:
    """Whisper's measure of repetition."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0


def without_loop(text: str) -> str:
    """The text up to where it begins again, when all that follows is its own beginning.

    A decoder that has read everything sometimes reads it once more until it runs out of tokens. A
    sentence of three words or more that a person really says twice loses nothing that matters.
    """
    spans = list(_WORD.finditer(text))
    words = [span[0].lower() for span in spans]
    for period in range(_LEAST_LOOP, len(words) - _LEAST_LOOP + 1):
        if len(set(words[:period])) < _LEAST_LOOP:
            continue
        if all(word == words[index % period] for index, word in enumerate(words)):
            return text[: spans[period].start()].rstrip()
    return text
