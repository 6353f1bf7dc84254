"""What a client heard and saw of a turn, from the ledgers and its own reports (docs/metrics.md)."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pipeline.events import TurnTrace
from pipeline.timeline import av_skew, render_freezes
from pipeline.timeline.causes import Cause, overlap
from pipeline.timeline.ledger import Emitted, Ledger
from pipeline.timeline.presentation import Presentation
from pipeline.timeline.record import EndPoints
from pipeline.timeline.speech_gaps import VoicedClause, speech_gaps

_BEFORE = 1.0
"""Seconds before a reply's first sample from which on a freeze belongs to its turn."""

_REPAINTED = 0.5
"""Seconds after a page came to the front in which a browser may still paint nothing (Chromium: up to 0.3)."""


@dataclass(slots=True)
class Track:
    """What went out on one, and when the client presented it, both on our clock."""

    ledger: Ledger
    presented: Presentation

    def at(self, pts: int) -> float | None:
        return self.presented.time_of(pts)

    def position(self, turn: str, where: float | None) -> tuple[float | None, float | None]:
        """When an audio position of a reply left and when it was heard; None for what is not remembered."""
        if where is None:
            return None, None
        frames = self.ledger.of_turn(turn)
        frame = next((frame for frame in frames if frame.start <= where < frame.end), None)
        if frame is None:
            return None, None
        return frame.sent_at, self.at(frame.pts + round((where - frame.start) * self.ledger.rate))


Spans = Sequence[tuple[float, float]]
"""From when to when, seconds."""


@dataclass(frozen=True, slots=True)
class Disturbances:
    held: Spans = ()
    """The reply waited for the user."""
    lags: Spans = ()
    """The event loop stood still."""
    concealed: Spans = ()
    """The client had no sound to play."""
    hidden: Spans = ()
    """The client's page was not shown, so nothing had to be painted."""
    frozen_until: float | None = None
    """By the client's newest report no picture had come for too long; this is until when none was told of."""


def end_points(trace: TurnTrace, speech_end: float | None, voice: Track) -> EndPoints:
    """Where a turn's wait begins and ends. `speech_end`: by the client, on our clock."""
    return EndPoints(speech_end, *voice.position(trace.turn_id, trace.first_audible))


def measured(
    trace: TurnTrace,
    points: EndPoints,
    voice: Track,
    face: Track,
    disturbances: Disturbances,
) -> dict[str, Any]:
    """The fields of a turn's record that only a client can know; null where it did not say."""
    speech_end = trace.speech_end if points.speech_end is None else points.speech_end
    sound, pictures = voice.ledger.of_turn(trace.turn_id), face.ledger.of_turn(trace.turn_id)
    whole = bool(sound) and sound[0].start == 0.0  # else its beginning is not remembered any more
    moved = (face.presented.seen(picture.pts) for picture in pictures if whole and picture.moving)
    clauses = [VoicedClause(*times) for times in trace.clause_times]
    _, first = voice.position(trace.turn_id, trace.first_sound)
    gaps = speech_gaps(
        sound,
        voice.ledger.rate,
        clauses,
        voice.at,
        held=disturbances.held,
        lags=disturbances.lags,
        concealed=disturbances.concealed,
    )
    began = next((at for at in (points.heard, first, trace.first_sound_at) if at is not None), None)
    skews = av_skew.skews(sound, voice.ledger.rate, pictures, voice.at, face.presented.seen)
    return {
        "time_to_first_audio_ms": _ms(speech_end, points.heard),
        "time_to_first_sound_ms": _ms(speech_end, first),
        "time_to_first_frame_ms": _ms(speech_end, next((at for at in moved if at is not None), None)),
        "speech_gaps": [
            {
                "at_ms": _ms(began, gap.at),
                "duration_ms": round(gap.duration * 1000, 1),
                "cause": gap.cause.value,
            }
            for gap in gaps
        ],
        "render_freezes": _freezes(began, sound, face, disturbances),
        "av_skew_ms": av_skew.summary(skews),
        "barge_in_stop_ms": _barge_in_stop(trace, sound, voice),
    }


_FROM = {
    "sound": ("time_to_first_audio_ms", "time_to_first_sound_ms", "av_skew_ms", "barge_in_stop_ms"),
    "pictures": ("time_to_first_frame_ms", "render_freezes", "av_skew_ms"),
}
"""What a client reports → the fields that are made of it."""


def reasons(fields: Mapping[str, Any], lacks: Set[str], told: Set[str]) -> dict[str, str]:
    """Why fields are null that a client could have known.

    `lacks`: what it has no means to tell; `told`: what it did tell something of.
    """
    found: dict[str, str] = {}
    for reported, made_of_it in _FROM.items():
        if reported in lacks:
            reason = f"this client has no means to tell which {reported} it presents when"
        elif reported not in told:
            reason = f"the client did not report the {reported} that it presented"
        else:
            continue
        found |= {name: reason for name in made_of_it if fields.get(name) is None}
    return found


def _freezes(
    began: float | None,
    sound: Sequence[Emitted],
    face: Track,
    disturbances: Disturbances,
) -> list[dict[str, Any]] | None:
    if face.presented.newest is None:
        return None
    if not sound:
        return []
    start, end = sound[0].made_at - _BEFORE, sound[-1].made_at
    presented = face.presented.times(start, end, before=render_freezes.WANTED)
    open_until = None if presented and presented[-1] > end else disturbances.frozen_until
    found = [
        still for still in render_freezes.stills(presented, open_until) if still.at + still.duration > start
    ]
    return [
        {
            "at_ms": _ms(began, still.at),
            "duration_ms": round(still.duration * 1000, 1),
            "cause": _cause_of(still, face, disturbances).value,
            "w3c": still.w3c,
        }
        for still in found
    ]


def _cause_of(still: render_freezes.Still, face: Track, disturbances: Disturbances) -> Cause:
    end = still.at + still.duration
    excess = still.duration / 2
    hidden = [(since, until + _REPAINTED) for since, until in disturbances.hidden]
    if overlap(hidden, still.at, end) >= excess:
        return Cause.PAINT
    before, after = face.presented.around(still.at, end)
    first = None if before is None else face.ledger.frame(before)
    if first is None or first.sent_at is None:
        return Cause.UNKNOWN
    if after is not None:
        last = face.ledger.frame(after)
        if last is None or last.sent_at is None:
            return Cause.UNKNOWN
        left = last.sent_at
    else:
        left = end  # it is open: whatever was made since counts
    if overlap(disturbances.lags, first.made_at, left) >= excess:
        return Cause.LOOP
    if face.ledger.widest(first.pts, after, lambda frame: frame.drawn_at, left) >= excess:
        return Cause.RENDER
    if face.ledger.widest(first.pts, after, lambda frame: frame.sent_at, left) >= excess:
        return Cause.ENCODE
    return Cause.NETWORK


def _barge_in_stop(trace: TurnTrace, sound: Sequence[Emitted], voice: Track) -> float | None:
    """User's voiced onset → last sample of the reply before it fell silent, as heard."""
    if not trace.interrupted or trace.interrupted_by is None or not sound:
        return None
    last = sound[-1]
    ended = voice.at(last.pts)
    if ended is None:
        return None
    return _ms(trace.interrupted_by, ended + (last.end - last.start))


def _ms(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round((end - start) * 1000, 1)
