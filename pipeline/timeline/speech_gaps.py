"""Speech gaps: where a reply fell silent for its listener that should have gone on (docs/metrics.md)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.timeline.causes import Cause, overlap
from pipeline.timeline.ledger import Emitted

SHORTEST = 0.04
"""Seconds."""

_SHORT = SHORTEST / 2
"""Seconds; what is shorter than a packet of sound is jitter."""

_NEAR = 0.3
"""Seconds; a browser tells four times a second how much it concealed, not when."""


@dataclass(frozen=True, slots=True)
class VoicedClause:
    """When a clause was written and voiced; `position`: where in the reply it begins, seconds."""

    position: float
    written_at: float
    voiced_at: float


@dataclass(frozen=True, slots=True)
class SpeechGap:
    at: float
    """When it began, on our clock."""
    duration: float
    cause: Cause


def speech_gaps(
    frames: Sequence[Emitted],
    rate: int,
    clauses: Sequence[VoicedClause],
    heard_at: Callable[[int], float | None],
    held: Sequence[tuple[float, float]] = (),
    lags: Sequence[tuple[float, float]] = (),
    concealed: Sequence[tuple[float, float]] = (),
) -> list[SpeechGap]:
    """The gaps in one reply.

    `frames`: what of it went out, in order. `heard_at`: when the client played a pts; None, where it did
    not say, takes what went out instead. `held`: from when to when the reply was held for the user, which
    is no gap. `lags`: from when to when the event loop stood still. `concealed`: from when to when the client
    had nothing to play, by its own account; what never came leaves no other trace in what it did play.
    """
    silences = []
    for before, after in pairwise(frames):
        silent = (after.pts - before.pts) / rate - (before.end - before.start)
        lasted = before.end - before.start
        began, resumed = heard_at(before.pts), heard_at(after.pts)
        if began is None or resumed is None:
            began, resumed = before.made_at, before.made_at + lasted + silent
        began += lasted
        if resumed - began < _SHORT or overlap(held, before.made_at, after.made_at) > 0:
            continue
        silences.append(SpeechGap(began, resumed - began, _cause(before, after, silent, clauses, lags)))
    found = _whole(silences)
    return sorted([*found, *_lost(frames, heard_at, concealed, held, found)], key=lambda gap: gap.at)


def _whole(silences: Sequence[SpeechGap]) -> list[SpeechGap]:
    """The gaps among silences of a reply, in order. What sounds between two of them for less than SHORTEST is
    not audible (docs/metrics.md): a packet that came late and the hole behind it are one gap."""
    groups: list[list[SpeechGap]] = []
    for silence in silences:
        if groups and silence.at - _end(groups[-1][-1]) < SHORTEST:
            groups[-1].append(silence)
        else:
            groups.append([silence])
    longest = [max(group, key=lambda silence: silence.duration) for group in groups]
    return [
        SpeechGap(group[0].at, _end(group[-1]) - group[0].at, worst.cause)
        for group, worst in zip(groups, longest, strict=True)
        if worst.duration >= SHORTEST
    ]


def _end(gap: SpeechGap) -> float:
    return gap.at + gap.duration


def _lost(
    frames: Sequence[Emitted],
    heard_at: Callable[[int], float | None],
    concealed: Sequence[tuple[float, float]],
    held: Sequence[tuple[float, float]],
    found: Sequence[SpeechGap],
) -> list[SpeechGap]:
    """What was concealed in the reply and is not one of the gaps that were found."""
    first, last = (heard_at(frame.pts) for frame in (frames[0], frames[-1])) if frames else (None, None)
    if first is None or last is None:
        return []
    known = [*held, *((gap.at - _NEAR, _end(gap) + _NEAR) for gap in found)]
    return [
        SpeechGap(start, end - start, Cause.NETWORK)
        for start, end in concealed
        if first < start and end <= last and end - start >= SHORTEST and not overlap(known, start, end)
    ]


def _cause(
    before: Emitted,
    after: Emitted,
    silent: float,
    clauses: Sequence[VoicedClause],
    lags: Sequence[tuple[float, float]],
) -> Cause:
    if silent >= _SHORT:
        if before.sent_at is not None and before.sent_at - before.made_at >= silent / 2:
            late = overlap(lags, before.made_at, before.sent_at) >= silent / 2
            return Cause.LOOP if late else Cause.ENCODE  # a frame is made when the one before has left
        if after.follows == before.pts or overlap(lags, before.made_at, after.made_at) >= silent / 2:
            return Cause.LOOP  # not even silence was made
        return _waited_for(before, after, clauses)
    if after.made_at - before.made_at - (before.end - before.start) - silent >= _SHORT:
        return Cause.LOOP
    if before.sent_at is None or after.sent_at is None:
        return Cause.UNKNOWN
    on_the_way_out = (after.sent_at - after.made_at) - (before.sent_at - before.made_at)
    if on_the_way_out >= _SHORT:
        late = overlap(lags, before.made_at, after.sent_at) >= on_the_way_out / 2
        return Cause.LOOP if late else Cause.ENCODE
    return Cause.NETWORK


def _waited_for(before: Emitted, after: Emitted, clauses: Sequence[VoicedClause]) -> Cause:
    """Whether the text or its voice was what the reply waited for."""
    begun = [clause for clause in clauses if clause.position <= after.start + 1e-3]
    if not begun:
        return Cause.UNKNOWN
    clause = begun[-1]
    if clause.position < after.start - 1e-3:
        return Cause.TTS  # in mid-clause: its text was there
    dry = before.made_at
    written = min(max(clause.written_at, dry), after.made_at)
    return Cause.LLM if written - dry >= after.made_at - written else Cause.TTS
