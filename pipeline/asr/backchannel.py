"""Sounds of a listener: "mm-hm" says "go on", not "stop"."""

from pipeline.asr.partials import word_sequence

_SOUNDS = {
    "en": frozenset(
        [
            "mm",
            "mmm",
            "mhm",
            "hm",
            "hmm",
            "mmhm",
            "mmhmm",
            "mm-hm",
            "hmhm",
            "huh",
            "uh",
            "uhuh",
            "uhhuh",
            "um",
            "ah",
            "aha",
            "oh",
            "ooh",
            "ok",
            "okay",
            "yeah",
            "yep",
            "yes",
            "right",
            "sure",
            "wow",
            "nice",
            "cool",
            "great",
            "i",
            "see",
            "really",
        ]
    ),
}
"""By ISO 639 code: words that a listener drops in without wanting the floor."""

_LONGEST = 3
"""Words; more is something to say."""


def is_backchannel(text: str, language: str) -> bool:
    """Whether somebody who says this over another's speech is only listening."""
    words = word_sequence(text.replace("-", ""))
    return 0 < len(words) <= _LONGEST and all(word in _SOUNDS.get(language, ()) for word in words)
