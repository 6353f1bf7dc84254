"""Is that transcript the avatar's own speech? The words decide where the sound left a doubt."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")

_LEAST_WORDS = 3
"""Fewer words are anybody's: "yes", "thank you", "the station"."""
_LEAST_SHARE = 0.75
"""Of the transcript's letters, those said by the avatar in the same order. Whisper misreads residue, so
not all can be asked for; a user who quotes the avatar adds words of their own."""
_LEAST_RUN = 2
"""Words in a row that count as the same; single ones agree by chance."""


def is_own_speech(transcript: str, spoken: Sequence[str]) -> bool:
    """Whether a transcript says only what the avatar was saying.

    `spoken` are the words, in order, that went out while the transcript's audio was picked up, and for
    as long before as echo may take (0.7 s) — not the whole reply: who repeats it after its end means it.
    False for fewer than three words, unless the avatar was saying exactly those, and when in doubt.
    """
    heard = _words(transcript)
    said = _words(" ".join(spoken))
    if not heard or not said:
        return False
    if len(heard) < _LEAST_WORDS:
        return len(said) <= 2 * _LEAST_WORDS and _contains(said, heard)
    matcher = SequenceMatcher(None, heard, said, autojunk=False)
    runs = [block for block in matcher.get_matching_blocks() if block.size >= _LEAST_RUN]
    same = sum(len(word) for run in runs for word in heard[run.a : run.a + run.size])
    return same >= _LEAST_SHARE * sum(map(len, heard))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def _contains(said: list[str], heard: list[str]) -> bool:
    return any(said[start : start + len(heard)] == heard for start in range(len(said)))
