"""Viseme spans → the shape of the mouth at any audio position: a pure, continuous function.

Each part of the mouth is a weighted mean of the visemes around the position, seen through a window
that looks further ahead than back (anticipation), with weights that say how much a viseme cares about
that part: Cohen and Massaro, "Modeling coarticulation in synthetic visual speech" (1993), with
windows of finite length in place of their exponentials, so that far sounds have no effect at all.
On top come the constraints of Edwards, Landreth, Fiume and Singh, "JALI" (SIGGRAPH 2016, section 4):
bilabials close the lips, labiodentals put the lip under the teeth, sibilants narrow the jaw,
tongue-only sounds leave the lips to their neighbours.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.render.easing import ease
from pipeline.render.visemes import Viseme, VisemeSpan


class MouthShape(NamedTuple):
    """The mouth's part of a pose; see `pipeline.events.Pose` for the meaning of each value."""

    jaw: float = 0.0
    width: float = 0.0
    press: float = 0.0
    tuck: float = 0.0
    tongue: float = 0.0


REST = MouthShape()


class _Target(NamedTuple):
    """What a viseme wants, and how strongly it insists on it against its neighbours."""

    jaw: float
    jaw_weight: float
    width: float
    width_weight: float
    tongue: float = 0.0


# Values chosen by eye on the drawn face against Meta's reference pictures; weights by the rules above:
# vowels outweigh consonants, sibilants insist on a narrow jaw, rounded sounds on their lips.
_TARGETS = {
    Viseme.SIL: _Target(0.0, 1.0, 0.0, 0.5),
    Viseme.PP: _Target(0.05, 0.5, 0.0, 0.3),
    Viseme.FF: _Target(0.12, 1.2, 0.1, 0.5),
    Viseme.TH: _Target(0.32, 1.0, 0.1, 0.4, tongue=1.0),
    Viseme.DD: _Target(0.22, 0.7, 0.15, 0.25, tongue=0.45),
    Viseme.KK: _Target(0.28, 0.4, 0.05, 0.2),
    Viseme.CH: _Target(0.22, 1.4, -0.65, 1.6),
    Viseme.SS: _Target(0.15, 1.6, 0.35, 0.6),
    Viseme.NN: _Target(0.25, 0.6, 0.1, 0.25, tongue=0.6),
    Viseme.RR: _Target(0.28, 1.0, -0.4, 1.0),
    Viseme.AA: _Target(1.0, 3.0, 0.1, 1.0),
    Viseme.E: _Target(0.5, 1.3, 0.45, 1.0),
    Viseme.I: _Target(0.32, 1.1, 0.75, 1.2),
    Viseme.O: _Target(0.78, 2.4, -0.65, 1.8),
    Viseme.U: _Target(0.26, 1.4, -0.95, 2.0),
}

OPEN_VOWELS = (Viseme.AA, Viseme.O)

_UNSTRESSED = 0.8
"""Share of its jaw opening that an unstressed vowel keeps."""


class _Window(NamedTuple):
    """A raised cosine about `ahead` seconds after the position, `half` seconds to each side."""

    ahead: float
    half: float

    def until(self, offset: float) -> float:
        """How much of the window lies before `offset` seconds from the position, 0 … 1."""
        x = min(1.0, max(-1.0, (offset - self.ahead) / self.half))
        return 0.5 * (1.0 + x + math.sin(math.pi * x) / math.pi)


# Lips anticipate most (rounding is seen up to about 120 ms early), the jaw less, the tongue least.
_JAW = _Window(ahead=0.012, half=0.055)
_LIPS = _Window(ahead=0.025, half=0.090)
_TONGUE = _Window(ahead=0.010, half=0.045)
_REACH_BACK = 0.12
_REACH_AHEAD = 0.15


class _Gate(NamedTuple):
    """How a constraint comes and goes around its span: full from `lead` before it to its end.

    A short open vowel beside it shortens these times, so that the mouth gets to open for it.
    """

    attack: float
    lead: float
    release: float

    def at(self, position: float, spans: Sequence[VisemeSpan], i: int) -> float:
        span = spans[i]
        if position > span.end:
            late = position - span.end
            return ease(1.0 - late / min(self.release, _room(spans, i + 1)))
        early = span.start - position
        hurry = min(1.0, _room(spans, i - 1) / (self.attack + self.lead))
        return ease(1.0 - (early - self.lead * hurry) / (self.attack * hurry))


def _room(spans: Sequence[VisemeSpan], i: int) -> float:
    """The time that a constraint may take from the span beside it."""
    if 0 <= i < len(spans) and spans[i].viseme in OPEN_VOWELS:
        return 0.4 * spans[i].duration
    return math.inf


# In Piper's recordings the level before a word-medial p falls from 50 ms before its interval on and
# stays down to its end; lips close in about 50 ms.
_CLOSURE = _Gate(attack=0.045, lead=0.015, release=0.050)
_TUCK = _Gate(attack=0.050, lead=0.010, release=0.050)
_TUCKED_JAW = 0.12


def mouth_shape(spans: Sequence[VisemeSpan], position: float) -> MouthShape:
    """The mouth at an audio position, given settled spans in order. Rest where there are none."""
    first = bisect_left(spans, position - _REACH_BACK, key=lambda span: span.end)
    jaw, width, tongue = _Mean(), _Mean(), _Mean()
    closure = tuck = 0.0
    for i in range(first, len(spans)):
        span = spans[i]
        if span.start > position + _REACH_AHEAD:
            break
        target = _TARGETS[span.viseme]
        start, end = span.start - position, span.end - position
        jaw.add(_jaw_opening(span, target), target.jaw_weight, _JAW.until(end) - _JAW.until(start))
        width.add(target.width, target.width_weight, _LIPS.until(end) - _LIPS.until(start))
        tongue.add(target.tongue, 1.0, _TONGUE.until(end) - _TONGUE.until(start))
        if span.viseme is Viseme.PP:
            closure = max(closure, _CLOSURE.at(position, spans, i))
        elif span.viseme is Viseme.FF:
            tuck = max(tuck, _TUCK.at(position, spans, i))
    open_jaw = jaw.value(_TARGETS[Viseme.SIL].jaw_weight)
    open_jaw += (min(open_jaw, _TUCKED_JAW) - open_jaw) * tuck
    return MouthShape(
        jaw=open_jaw * (1.0 - closure),
        width=width.value(_TARGETS[Viseme.SIL].width_weight),
        press=closure,
        tuck=tuck * (1.0 - closure),
        tongue=tongue.value(1.0),
    )


def _jaw_opening(span: VisemeSpan, target: _Target) -> float:
    vowel = span.viseme in (Viseme.AA, Viseme.O, Viseme.E)
    return target.jaw * (_UNSTRESSED + (1 - _UNSTRESSED) * span.stress) if vowel else target.jaw


class _Mean:
    """A weighted mean over the part of a window that spans cover; the rest of it counts as rest."""

    __slots__ = ("_covered", "_sum", "_weight")

    def __init__(self) -> None:
        self._sum = self._weight = self._covered = 0.0

    def add(self, value: float, weight: float, share: float) -> None:
        self._sum += value * weight * share
        self._weight += weight * share
        self._covered += share

    def value(self, rest_weight: float) -> float:
        uncovered = max(0.0, 1.0 - self._covered)
        return self._sum / max(1e-9, self._weight + rest_weight * uncovered)
