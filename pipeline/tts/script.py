"""What the voice is given for a clause: runs of phonemes, and which of them are whose."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from piper import PiperVoice

from pipeline.errors import SynthesisError
from pipeline.events import Phoneme
from pipeline.tts.characters import sayable
from pipeline.tts.language import Language
from pipeline.tts.verbalise import spoken_forms
from pipeline.tts.waveform import CLAUSE_PAUSE, CUT_PAUSE, SENTENCE_PAUSE
from pipeline.tts.words import is_sound, word_times

_MAX_SYMBOLS = 300
"""Phonemes per run of the voice, about 20 s. A run takes 25 MB for each second and keeps them
(measured); a clause of long numbers can come to minutes."""

_SENTENCE_ENDS = frozenset(".?!")
_CLAUSE_ENDS = frozenset(",;:")


@dataclass(frozen=True, slots=True)
class Line:
    """Phonemes that the voice speaks in one run, and the quiet after them in seconds."""

    symbols: Sequence[str]
    least_pause: float
    most_pause: float | None


@dataclass(frozen=True, slots=True)
class Script:
    words: Sequence[str]
    spans: Sequence[tuple[int, int]]
    """The symbols of each word, counted through all lines, in order; none for a lone dash."""
    lines: Sequence[Line]

    def ends_word(self, symbol: int) -> bool:
        """Whether the symbols before this one are whole words, the last of them audible."""
        said = [(start, end) for start, end in self.spans if start < symbol]
        return bool(said) and said[-1][1] <= symbol and said[-1][0] < said[-1][1]


def write_script(text: str, voice: PiperVoice, language: Language) -> Script:
    """Raises SynthesisError when there is nothing to say in `text`."""
    words = text.split()
    forms = [sayable(form) for form in spoken_forms(words, language)]
    known = voice.config.phoneme_id_map
    sentences = [
        [symbol for symbol in sentence if symbol in known]
        for sentence in voice.phonemize(" ".join(filter(None, forms)))
    ]
    runs = [run for run in itertools.chain(*map(_runs, sentences)) if any(map(is_sound, run))]
    if not runs:
        raise SynthesisError("nothing to say: no letter or digit that the voice can speak")
    lines = [_line(run) for run in runs]
    symbols = [symbol for line in lines for symbol in line.symbols]
    alone = [list(itertools.chain.from_iterable(voice.phonemize(form))) for form in forms]
    # Which symbols are whose does not depend on how long they last: each takes one unit of time.
    counted = [Phoneme(symbol, at, at + 1) for at, symbol in enumerate(symbols)]
    spans = [
        (round(word.start), round(word.end))
        for word in word_times(list(zip(words, alone, strict=True)), counted, len(symbols))
    ]
    return Script(words=words, spans=spans, lines=lines)


def _runs(symbols: list[str]) -> Iterator[list[str]]:
    """A sentence's phonemes in runs of at most _MAX_SYMBOLS, parted at a space where there is one."""
    while len(symbols) > _MAX_SYMBOLS:
        space = next((at for at in range(_MAX_SYMBOLS, 0, -1) if symbols[at] == " "), _MAX_SYMBOLS)
        yield symbols[:space]
        symbols = symbols[space:]
    yield symbols


def _line(symbols: list[str]) -> Line:
    end = next(symbol for symbol in reversed(symbols) if symbol != " ")
    if end in _SENTENCE_ENDS:
        return Line(symbols, SENTENCE_PAUSE, None)
    if end in _CLAUSE_ENDS:
        return Line(symbols, CLAUSE_PAUSE, None)
    # The sentence goes on in the next clause; without a comma the voice would end it here.
    return Line([*symbols, ",", " "], 0.0, CUT_PAUSE)
