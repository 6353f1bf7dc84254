"""No viseme too short to be seen reaches the mouth: short ones are absorbed, important ones grow."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.render.visemes import Viseme, VisemeSpan

SHORTEST_S = 0.04
"""One frame at 25 per second. What is shorter would show as flicker or, as chance has it, not at all."""

_IMPORTANCE = {Viseme.PP: 3, Viseme.FF: 2, Viseme.AA: 2, Viseme.O: 2, Viseme.SIL: 0}
"""What viewers miss first: lips that do not meet, then the open vowels. Everything else is 1."""

_SLACK = 1e-6


def settle(spans: Sequence[VisemeSpan]) -> list[VisemeSpan]:
    """The spans with none shorter than SHORTEST_S, covering the same time.

    Least important first, then shortest first: a short span goes to its neighbours; a bilabial or an
    open vowel instead takes from them what it lacks. Bilabials never lose time.
    """
    settled = list(spans)
    while (short := _next_short(settled)) is not None:
        if _importance(settled[short]) < 2 or not _grow(settled, short):
            _absorb(settled, short)
        settled = _merged(settled)
    return settled


def _importance(span: VisemeSpan) -> int:
    return _IMPORTANCE.get(span.viseme, 1)


def _next_short(spans: Sequence[VisemeSpan]) -> int | None:
    short = [i for i, span in enumerate(spans) if span.duration < SHORTEST_S - _SLACK]
    if not short or len(spans) == 1:
        return None
    return min(short, key=lambda i: (_importance(spans[i]), spans[i].duration))


def _absorb(spans: list[VisemeSpan], i: int) -> None:
    """Give the span's time to its neighbours: to the one that needs it, else half to each."""
    gone = spans[i]
    before = spans[i - 1] if i > 0 else None
    after = spans[i + 1] if i + 1 < len(spans) else None
    if before is None:
        cut = gone.start
    elif after is None:
        cut = gone.end
    else:
        needs = (SHORTEST_S - before.duration, SHORTEST_S - after.duration)
        cut = (gone.start + gone.end) / 2
        if max(needs) > 0:
            cut = gone.end if needs[0] >= needs[1] else gone.start
    if before is not None:
        spans[i - 1] = replace(before, end=cut, stress=max(before.stress, _passed_on(gone, before)))
    if after is not None:
        spans[i + 1] = replace(after, start=cut)
    del spans[i]


def _passed_on(gone: VisemeSpan, heir: VisemeSpan) -> float:
    return gone.stress if heir.viseme not in (Viseme.SIL, Viseme.PP) else 0.0


def _grow(spans: list[VisemeSpan], i: int) -> bool:
    """Lengthen a span to SHORTEST_S at its neighbours' cost; False when they can spare too little."""
    lack = SHORTEST_S - spans[i].duration
    spare = {j: _spare(spans[j]) for j in (i - 1, i + 1) if 0 <= j < len(spans)}
    if sum(spare.values()) < lack - _SLACK:
        weakest = min(spare, key=lambda j: (_importance(spans[j]), spans[j].duration))
        if _importance(spans[weakest]) >= _importance(spans[i]):
            return False
        _absorb(spans, weakest)
        return True
    # the mouth may be early, hardly late: take from the sound before first
    for j in sorted(spare):
        taken = min(lack, spare[j])
        lack -= taken
        if j < i:
            spans[j] = replace(spans[j], end=spans[j].end - taken)
            spans[i] = replace(spans[i], start=spans[i].start - taken)
        else:
            spans[j] = replace(spans[j], start=spans[j].start + taken)
            spans[i] = replace(spans[i], end=spans[i].end + taken)
    return True


def _spare(span: VisemeSpan) -> float:
    return 0.0 if span.viseme is Viseme.PP else max(0.0, span.duration - SHORTEST_S)


def _merged(spans: Sequence[VisemeSpan]) -> list[VisemeSpan]:
    merged: list[VisemeSpan] = []
    for span in spans:
        if merged and merged[-1].viseme is span.viseme:
            merged[-1] = replace(merged[-1], end=span.end, stress=max(merged[-1].stress, span.stress))
        else:
            merged.append(span)
    return merged
