"""Cuts a streamed reply into clauses that can be spoken on their own.

The first clause is short, because the listener waits for it; later ones are long, because they
sound better and because what is already queued buys the time. Text is only ever cut between words,
so the clauses joined by spaces are the words of the text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from pipeline.tts.characters import has_speech
from pipeline.tts.language import Language, find_language


@dataclass(frozen=True, slots=True)
class ClauseLimits:
    """Words that a clause may have. Words are what can be spoken; a lone dash is none."""

    sentence: int
    """Fewest before a sentence's end ends the clause."""
    clause: int
    """Fewest before a comma, colon, semicolon, dash or line break ends it."""
    longest: int
    """From this many on it is cut between words."""


# Measured on two cores: a word is 0.33 s of speech, takes the model 20 ms and the voice 30 ms. So each
# word of the first clause makes the listener wait 50 ms longer, and what is queued pays for a next
# clause of several times its length. "Sure!" lasts 0.8 s with its pause, enough for 14 words.
GROWING_LIMITS = (
    ClauseLimits(sentence=1, clause=1, longest=4),
    ClauseLimits(sentence=1, clause=5, longest=12),
    ClauseLimits(sentence=2, clause=8, longest=26),
)
"""For the first, the second, and every later clause."""

SHARED_LIMITS = (ClauseLimits(sentence=3, clause=3, longest=6), *GROWING_LIMITS[1:])
"""While another conversation is in mid-turn: what is queued must last longer, for the next clause comes
later. Four callers, 32 turns: four gaps of 40 to 290 ms, all after a first clause of half a second."""

WHOLE_SENTENCES = (ClauseLimits(sentence=1, clause=1000, longest=1000),)
"""Nothing is cut but at the end of a sentence."""

MAX_CHARACTERS = 180
"""A clause longer than this is cut between words, however few they are (about 12 s of speech)."""


class _Break(IntEnum):
    NONE = 0
    CLAUSE = 1
    SENTENCE = 2


_GRACE = 2
"""Words by which a clause may grow past its longest, so as not to end in "of the"."""

_TOKEN = re.compile(r"(\S+)(\s+)")
_OPENERS = "\"'“‘([{*_«¿¡"
_CLOSERS = "\"'”’)]}*_»"
_DASHES = frozenset({"-", "--", "–", "—"})
_LIST_NUMBER = re.compile(r"\d{1,3}\.")
_INITIAL = re.compile(r"[^\W\d_]")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")


class ClauseCutter:
    """One reply's text in, clauses out. Where it cuts does not depend on how the text is chopped.

    A clause comes out as soon as the beginning of the word after it is known. Text with nothing to
    say in it (no letter, no digit) gives no clause.
    """

    def __init__(self, language: str = "en", limits: Sequence[ClauseLimits] = GROWING_LIMITS) -> None:
        """Limits are for the first clause, the second, …; the last one stays. Raises ConfigError."""
        self._language: Language = find_language(language)
        self._limits = tuple(limits)
        self._cut_so_far = 0
        self._unread = ""
        self._tokens: list[str] = []
        self._break = _Break.NONE
        self._line_start = True
        self._list_number = 0

    def feed(self, text: str) -> list[str]:
        """Clauses that this piece of text completes."""
        self._unread += text
        return self._read(last=False)

    def finish(self) -> list[str]:
        """What is left, at the end of the reply."""
        self._unread += "\n\n"
        clauses = self._read(last=True)
        if self._tokens and has_speech("".join(self._tokens)):
            clauses.append(self._cut(len(self._tokens)))
        self._tokens.clear()
        return clauses

    def _read(self, *, last: bool) -> list[str]:
        clauses: list[str] = []
        position = len(self._unread) - len(self._unread.lstrip())
        while match := _TOKEN.match(self._unread, position):
            token, gap = match.groups()
            following = _TOKEN.match(self._unread, match.end())
            beginning = following[1] if following else self._unread[match.end() :]
            if not (following or last or has_speech(beginning)):
                break
            found = self._break_after(token, gap, beginning)
            if found is None:
                if not (following or last):
                    break
                found = _closing_break(self._language, beginning)
            self._add(token, gap, found)
            if not beginning or has_speech(beginning):
                clauses += self._ready()
            position = match.end()
        self._unread = self._unread[position:]
        return clauses

    def _add(self, token: str, gap: str, found: _Break) -> None:
        if has_speech(token):
            self._break = found
        else:
            # A lone dash or quote belongs to the word before it, and so does the break there.
            self._break = max(self._break, found)
        self._tokens.append(token)
        self._line_start = "\n" in gap or self._break is _Break.SENTENCE

    def _ready(self) -> list[str]:
        limits = self._limits[min(self._cut_so_far, len(self._limits) - 1)]
        words = sum(map(has_speech, self._tokens))
        if words == 0:
            return []
        enough = {_Break.NONE: None, _Break.CLAUSE: limits.clause, _Break.SENTENCE: limits.sentence}
        needed = enough[self._break]
        if needed is not None and words >= needed:
            return [self._cut(len(self._tokens))]
        if words >= limits.longest or len(" ".join(self._tokens)) > MAX_CHARACTERS:
            at = best_cut(self._tokens, self._language, forced=words >= limits.longest + _GRACE)
            if at is not None:
                return [self._cut(at)]
        return []

    def _cut(self, at: int) -> str:
        clause = " ".join(self._tokens[:at])
        del self._tokens[:at]
        self._cut_so_far += 1
        return clause

    def _break_after(self, token: str, gap: str, beginning: str) -> _Break | None:
        """The break after a token; None when it takes the whole next word to tell."""
        found = self._punctuation_break(token, beginning)
        if gap.count("\n") > 1:
            return _Break.SENTENCE
        if gap.count("\n") == 1:
            return found if found is None else max(found, _Break.CLAUSE)
        return found

    def _punctuation_break(self, token: str, beginning: str) -> _Break | None:
        first = beginning.lstrip(_OPENERS)[:1]
        if token in _DASHES:
            between_numbers = self._tokens and self._tokens[-1][-1].isdigit() and first.isdigit()
            return _Break.NONE if between_numbers else _Break.CLAUSE
        core = token.rstrip(_CLOSERS)
        if core.endswith(("…", "..")):
            return _Break.NONE
        if core.endswith(("!", "?")):
            return _Break.CLAUSE if first.islower() else _Break.SENTENCE
        if core.endswith("."):
            return self._full_stop(core.lstrip(_OPENERS)[:-1], first)
        if core.endswith((",", ";", ":")):
            date_or_list = core.endswith(",") and core[-2:-1].isdigit() and first.isdigit()
            return _Break.NONE if date_or_list else _Break.CLAUSE
        return _Break.CLAUSE if core.endswith(("—", "–", "--")) else _Break.NONE

    def _full_stop(self, word: str, first: str) -> _Break | None:
        key = word.lower()
        if self._is_list_number(word + "."):
            return _Break.NONE
        if key in self._language.leading or (key in self._language.counting and first.isdigit()):
            return _Break.NONE
        if key in self._language.closing or _INITIAL.fullmatch(word) or _DOTTED.fullmatch(word):
            return None
        # A lower-case letter follows an abbreviation we do not know, or a careless writer's sentence.
        return _Break.CLAUSE if first.islower() else _Break.SENTENCE

    def _is_list_number(self, token: str) -> bool:
        """Whether "2." numbers an item (then remembered): on a new line, after a sentence, or next."""
        if not _LIST_NUMBER.fullmatch(token):
            return False
        number = int(token[:-1])
        begins_list = number == 1 and bool(self._tokens) and self._tokens[-1].endswith(":")
        if self._line_start or begins_list or (self._list_number and number == self._list_number + 1):
            self._list_number = number
            return True
        return False


def _closing_break(language: Language, following: str) -> _Break:
    word = following.strip(_OPENERS + _CLOSERS + ".,;:!?…").replace("’", "'")
    starts = word[:1].isupper() and word.lower() in language.starters
    return _Break.SENTENCE if starts or not following else _Break.NONE


def best_cut(tokens: Sequence[str], language: Language, *, forced: bool = True) -> int | None:
    """How many tokens to keep when there is no punctuation to cut at; None when there is no place.

    In the second half, rather before a word that begins a phrase, as late as possible, and after one that
    leans on the next only when `forced`.
    """
    best: tuple[int, int] | None = None
    for at in range(max(1, len(tokens) // 2), len(tokens)):
        if not has_speech(tokens[at]) or not has_speech("".join(tokens[:at])):
            continue
        before, after = tokens[at - 1], tokens[at].lower()
        leans = before.lower() in language.weak or before.rstrip(".").lower() in language.leading
        score = 2 * (after in language.joining) - 3 * leans + (not before[-1].isalnum())
        if best is None or (score, at) >= best:
            best = (score, at)
    if best is None or (best[0] < 0 and not forced):
        return None
    return best[1]
