"""IPA phonemes as espeak-ng writes them → the 15 visemes that lip-sync rigs share.

The set and its English examples: Meta, "Viseme Reference" of Oculus Lipsync (names sil … U), kept by
OpenXR as XR_META_face_tracking_visemes. It says nothing of the rest of IPA; sounds that Piper's
inventory adds go to the viseme with the same place of articulation and rounding, as far as a viewer
sees either. Only lips and jaw are visible: velars, glottals and the like share `kk`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.events import Phoneme


class Viseme(StrEnum):
    """Mouth shapes; values are the names that rigs use for their morph targets."""

    SIL = "sil"
    PP = "PP"
    FF = "FF"
    TH = "TH"
    DD = "DD"
    KK = "kk"
    CH = "CH"
    SS = "SS"
    NN = "nn"
    RR = "RR"
    AA = "aa"
    E = "E"
    I = "I"  # noqa: E741
    O = "O"  # noqa: E741
    U = "U"


NEUTRAL = Viseme.KK
"""For a symbol nobody knows: a little open, and shaped by what is around it."""

PAUSES = frozenset(' ^$!(),-.:;?"#')
"""Word boundaries, punctuation, start and end of a sentence."""

STRESS = {"ˈ": 1.0, "'": 1.0, "ˌ": 0.5}
"""Marks that stand before a vowel and take part of its time, with how much they stress it."""

MODIFIERS = frozenset("_ːˑ˞ʰʲˤ↓0123456789") | {"̧", "̃", "̪", "̯", "̩"}
"""Symbols that say more about the sound before them and lengthen it."""

_SOUNDS = {
    Viseme.PP: "p b m ɓ ʙ ʘ",
    Viseme.FF: "f v ɱ ʋ ⱱ ɸ β",
    Viseme.TH: "θ ð",
    Viseme.DD: "t d ʈ ɖ ɗ ɾ ɽ ǀ ǁ ǂ ǃ",
    Viseme.KK: "k ɡ g q ɢ ɠ ʛ c ɟ ʄ ŋ ɴ x χ ɣ ç ʝ ɰ h ɦ ɧ ħ ʕ ʔ ʜ ʡ ʢ",
    Viseme.CH: "ʃ ʒ ʂ ʐ ɕ ʑ",
    Viseme.SS: "s z ɬ ɮ",
    Viseme.NN: "n l ɲ ɳ ɫ ɭ ɺ ʎ ʟ",
    Viseme.RR: "ɹ r ɻ ʀ ʁ ɚ ɝ ɜ",
    Viseme.AA: "a ɑ æ ɐ ʌ ɶ",
    Viseme.E: "e ɛ ə ɘ ɞ ɤ ε",
    Viseme.I: "i ɪ ᵻ ɨ j ɯ",
    Viseme.O: "o ɔ ɒ ø œ ɵ",
    Viseme.U: "u ʊ ʉ y ʏ w ʍ ɥ",
}

VISEME_OF = {symbol: viseme for viseme, symbols in _SOUNDS.items() for symbol in symbols.split()}
"""The viseme of every symbol that is a sound."""

LONGEST_LINK_S = 0.1
"""A gap between words up to this long is no silence to the eye: the mouth is on its way to the next
sound. In Piper's alignments the closure of a word-initial stop lies in such a gap, its release in the
stop's own interval (median gap 46 ms)."""

LONGEST_CLOSURE_LEAD_S = 0.035
"""How much of such a gap a bilabial takes; more would cut short the vowel of the word before."""


@dataclass(frozen=True, slots=True)
class VisemeSpan:
    """A stretch of audio during which a viseme is spoken."""

    viseme: Viseme
    start: float
    """Seconds, on the audio-position axis."""
    end: float
    stress: float = 0.0
    """0 unstressed … 1 primary stress."""

    @property
    def duration(self) -> float:
        return self.end - self.start


def viseme_spans(phonemes: Sequence[Phoneme], at: float, unknown: Counter[str]) -> list[VisemeSpan]:
    """The visemes of a chunk heard from position `at` on, in order, without gaps inside.

    Stress marks go to the sound that follows, modifiers to the one before, equal neighbours merge.
    Symbols without a viseme are shown as NEUTRAL and counted in `unknown`.
    """
    spans: list[VisemeSpan] = []
    pending_start: float | None = None
    stress = 0.0
    for phoneme in phonemes:
        start, end = at + phoneme.start, at + phoneme.end
        symbol = phoneme.symbol
        if symbol in STRESS:
            stress = max(stress, STRESS[symbol])
            pending_start = start if pending_start is None else pending_start
            continue
        if symbol in MODIFIERS and spans:
            _extend(spans, end)
            continue
        if symbol in PAUSES or symbol in MODIFIERS:
            viseme = Viseme.SIL
        elif symbol in VISEME_OF:
            viseme = VISEME_OF[symbol]
        else:
            unknown[symbol] += 1
            viseme = NEUTRAL
        if pending_start is not None:
            start, pending_start = pending_start, None
        if viseme is Viseme.SIL:
            stress = 0.0
        if viseme is Viseme.CH and spans and spans[-1].viseme is Viseme.DD:
            # an affricate: the lips are out from its start on
            start = spans.pop().start
        if spans and spans[-1].viseme is viseme and not stress:
            _extend(spans, end)
        else:
            spans.append(VisemeSpan(viseme, start, end, stress))
        stress = 0.0
    return _link_words(spans)


def _extend(spans: list[VisemeSpan], end: float) -> None:
    last = spans[-1]
    spans[-1] = VisemeSpan(last.viseme, last.start, end, last.stress)


def _link_words(spans: Sequence[VisemeSpan]) -> list[VisemeSpan]:
    """Give short gaps between sounds to the sound after them, a bilabial no more than it needs."""
    linked: list[VisemeSpan] = []
    for i, span in enumerate(spans):
        inside = 0 < i < len(spans) - 1
        if span.viseme is Viseme.SIL and inside and span.duration <= LONGEST_LINK_S:
            continue
        start = linked[-1].end if linked else span.start
        if linked and span.viseme is Viseme.PP and span.start - start > LONGEST_CLOSURE_LEAD_S:
            start = span.start - LONGEST_CLOSURE_LEAD_S
            _extend(linked, start)
        if linked and linked[-1].viseme is span.viseme and not span.stress:
            _extend(linked, span.end)
        else:
            linked.append(VisemeSpan(span.viseme, start, span.end, span.stress))
    return linked
