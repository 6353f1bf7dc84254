"""Was that speech? Whisper writes fluent text for noise, coughs and music; these checks empty it.

faster-whisper's own checks sit in the part of the library that the short window goes around, so they
are made here, on the same three figures and, for the thresholds, Whisper's own defaults.
"""

import zlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TranscriptGuards:
    """Limits outside of which a transcript is taken for noise."""

    max_no_speech_probability: float = 0.6
    min_mean_log_probability: float = -1.0
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
        if mean_log_probability < self.min_mean_log_probability:
            return f"mean log probability {mean_log_probability:.2f}"
        if compression_ratio > self.max_compression_ratio:
            return f"compression ratio {compression_ratio:.1f}"
        return None


def compression_ratio(text: str) -> float:
    """Whisper's measure of repetition."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0
