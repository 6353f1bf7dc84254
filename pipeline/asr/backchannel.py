"""What is said in a word: a listener's "mm-hm", which says "go on" and not "stop", and whole answers."""

from pipeline.asr.partials import word_sequence

_SOUNDS = {
    "en": "mm mmm mhm hm hmm mmhm mmhmm hmhm huh uh uhuh uhhuh um ah aha oh ooh ok okay yeah yep yes "
    "right sure wow nice cool great i see really"
}
"""By ISO 639 code: words that a listener drops in without wanting the floor."""

_ANSWERS = {
    "en": "no hello hi hey thanks goodbye bye please stop wait sorry never nothing maybe absolutely "
    "exactly correct good thank you there"
}
"""Other words that are often all that is said."""

_LONGEST = 3
"""Words; more is something to say."""


def is_backchannel(text: str, language: str) -> bool:
    """Whether somebody who says this over another's speech is only listening."""
    return _only(text, _SOUNDS.get(language, ""))


def stands_alone(text: str, language: str) -> bool:
    """Whether these few words are mostly all that somebody says: "Yes.", "Hello", "Okay, thanks"."""
    return _only(text, f"{_SOUNDS.get(language, '')} {_ANSWERS.get(language, '')}")


def _only(text: str, known: str) -> bool:
    words = word_sequence(text.replace("-", ""))
    return 0 < len(words) <= _LONGEST and set(words) <= set(known.split())
