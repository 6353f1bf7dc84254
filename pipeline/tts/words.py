"""When each word is spoken: its own phonemes aligned to the clause's.

espeak runs words together ("of the" is one token) and makes many of one ("$1,250"), so tokens
cannot be counted. Each word is phonemised alone as well, and the two sequences of sounds are aligned
by edit distance (Needleman and Wunsch 1970). A sound of the clause then belongs to a word.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.events import Phoneme, Word

_VOWELS = frozenset("aeiouyæɐɑɒɔəɘɚɛɜɝɞɤɨɪɯɵøœɶʉʊʌʏᵻ")
_STRESS = frozenset("ˈˌ")

_GAP = 0.8
"""Cost of a sound that only one side has: less than two sounds of different kind."""


def is_sound(symbol: str) -> bool:
    """Whether a phoneme symbol is a vowel or consonant: not stress, length, punctuation or a space."""
    return unicodedata.category(symbol[0]) in ("Ll", "Lo", "Lu")


@dataclass(frozen=True, slots=True)
class _Sound:
    symbol: str
    start: float
    end: float


def word_times(
    words: Sequence[tuple[str, Sequence[str]]], phonemes: Sequence[Phoneme], duration: float
) -> list[Word]:
    """Times of the words of a clause, in order and not overlapping.

    `words`: each word's text and the phoneme symbols it has when spoken alone (none for a lone dash).
    `phonemes`: the clause's, with times. `duration`: of the audio, seconds.
    A word lasts from its first sound to its last. One that has no sound in the clause gets the time
    between its neighbours. A clause without any sound is shared out evenly.
    """
    sounds = _sounds(phonemes)
    expected = [
        (index, symbol) for index, (_, symbols) in enumerate(words) for symbol in symbols if is_sound(symbol)
    ]
    spans: list[tuple[float, float] | None] = [None] * len(words)
    for sound, owner in zip(sounds, _owners([symbol for _, symbol in expected], sounds), strict=True):
        if owner is not None:
            index = expected[owner][0]
            known = spans[index]
            spans[index] = (known[0] if known else sound.start, sound.end)
    return [
        Word(text=text, start=start, end=end)
        for (text, _), (start, end) in zip(words, _filled(spans, duration), strict=True)
    ]


def _sounds(phonemes: Sequence[Phoneme]) -> list[_Sound]:
    """Vowels and consonants, each from its stress mark to its last modifier."""
    sounds: list[_Sound] = []
    start: float | None = None
    for phoneme in phonemes:
        if is_sound(phoneme.symbol):
            sounds.append(_Sound(phoneme.symbol, phoneme.start if start is None else start, phoneme.end))
            start = None
        elif phoneme.symbol in _STRESS:
            start = phoneme.start if start is None else start
        elif sounds and start is None and unicodedata.category(phoneme.symbol[0]) in ("Lm", "Mn"):
            sounds[-1] = _Sound(sounds[-1].symbol, sounds[-1].start, phoneme.end)
        else:
            start = None
    return sounds


def _cost(one: str, other: str) -> float:
    if one == other:
        return 0.0
    # Vowels are reduced in running speech ("a" alone is "eɪ", in a clause "ɐ"), consonants less often.
    if (one in _VOWELS) != (other in _VOWELS):
        return 1.5
    return 0.5 if one in _VOWELS else 0.9


def _owners(expected: Sequence[str], sounds: Sequence[_Sound]) -> list[int | None]:
    """For each sound of the clause the index of the expected one it is, or belongs to."""
    rows, columns = len(expected) + 1, len(sounds) + 1
    if rows == 1:
        return [None] * len(sounds)
    total = [[0.0] * columns for _ in range(rows)]
    for row in range(rows):
        total[row][0] = row * _GAP
    total[0] = [column * _GAP for column in range(columns)]
    for row in range(1, rows):
        above, here, symbol = total[row - 1], total[row], expected[row - 1]
        for column in range(1, columns):
            here[column] = min(
                above[column - 1] + _cost(symbol, sounds[column - 1].symbol),
                above[column] + _GAP,
                here[column - 1] + _GAP,
            )
    owners: list[int | None] = [None] * len(sounds)
    row, column = rows - 1, columns - 1
    while column:
        best = total[row][column]
        if row and best == total[row - 1][column - 1] + _cost(expected[row - 1], sounds[column - 1].symbol):
            row, column = row - 1, column - 1
            owners[column] = row
        elif row and best == total[row - 1][column] + _GAP:
            row -= 1
        else:
            # A sound no word has: it belongs to the word before it, or to the first.
            column -= 1
            owners[column] = max(row - 1, 0)
    return owners


def _filled(spans: Sequence[tuple[float, float] | None], duration: float) -> list[tuple[float, float]]:
    """The spans, with those that are missing put between their neighbours."""
    filled: list[tuple[float, float]] = []
    index = 0
    while index < len(spans):
        span = spans[index]
        if span is not None:
            filled.append(span)
            index += 1
            continue
        stop = next((at for at in range(index, len(spans)) if spans[at] is not None), len(spans))
        begin = filled[-1][1] if filled else 0.0
        after = spans[stop] if stop < len(spans) else None
        end = after[0] if after else duration
        step = (end - begin) / (stop - index)
        filled += pairwise(min(begin + step * n, end) for n in range(stop - index + 1))
        index = stop
    return filled
