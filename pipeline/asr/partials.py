"""Partial transcripts that only ever grow."""

import re

_NOT_WORD = re.compile(r"[^\w\s']+")


def word_sequence(text: str) -> list[str]:
    """A transcript's words for comparing: lower case, without punctuation."""
    return _NOT_WORD.sub(" ", text.lower()).split()


def equivalent(one: str, other: str) -> bool:
    """Whether two transcripts say the same (docs/metrics.md)."""
    return word_sequence(one) == word_sequence(other)


class StablePartial:
    """The part of a turn's transcripts that two in a row agree on; what was shown is never taken back.

    The rule is LocalAgreement-2 of whisper_streaming (Macháček et al. 2023), on words.
    """

    def __init__(self) -> None:
        self.text = ""
        self._last: list[str] = []

    def update(self, hypothesis: str) -> bool:
        """Take the newest reading of the turn so far; whether `text` has grown."""
        shown = len(self.text.split())
        words = hypothesis.split()
        agreed = 0
        for word, before in zip(words, self._last, strict=False):
            if word_sequence(word) != word_sequence(before):
                break
            agreed += 1
        self._last = words
        if agreed <= shown:
            return False
        self.text = " ".join(filter(None, [self.text, *words[shown:agreed]]))
        return True
