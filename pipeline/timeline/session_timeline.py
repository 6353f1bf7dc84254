"""One session on one timeline: what went out, what the client says it played and showed, what turns were.

An observer. It is told; nothing waits for it. A turn's record is made twice: when the turn is over, with
what the server knows, and again when the client's reports have reached the end of the reply.
"""

from collections import deque
from collections.abc import Callable, Mapping, Set
from typing import Any

from pipeline.clock import Clock
from pipeline.events import WIRE_RATE, ClientObservation, ClockStamps, TurnInput, TurnTrace
from pipeline.timeline.clock_tie import ClockSample, ClockTie
from pipeline.timeline.ledger import KEPT, Emitted, Ledger
from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.measured import Disturbances, Track, end_points, measured, reasons
from pipeline.timeline.presentation import Presentation
from pipeline.timeline.record import EndPoints, TurnRecords, stage_shares, stages_violated
from pipeline.timeline.render_freezes import STALL
from pipeline.timeline.shortened import fitting
from pipeline.timeline.spells import Spells
from pipeline.timeline.witness import Witness

VIDEO_RATE = 90_000

_PATIENCE = 2.0
"""Seconds after a reply's end in which the client's reports may still come."""

_MOST_WAITING = 8
"""Turns whose reports are awaited at once; a client that interrupts faster gets the oldest as it is."""

_SPEECH_ENDS = 8

_AWAY = 60.0
"""Seconds from now beyond which a moment that a client tells is none: its clock was set, or it makes things
up, and one such number would spoil every mean that it gets into."""

_ADJOINING = 0.005
"""Seconds by which the tie of the clocks may move between two reports."""

_TOLERANCE = 0.02
"""Seconds, beside the clocks': a packet of sound is stamped as a whole."""


class SessionTimeline:
    """`on_measured` gets each turn's whole record, once."""

    def __init__(
        self,
        clock: Clock,
        route: Mapping[str, Any],
        lag: LoopLag,
        on_measured: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._clock = clock
        self._records = TurnRecords(clock, route)
        self._lag = lag
        self._on_measured = on_measured
        self._rtp_origin: Callable[[str], int | None] = lambda kind: None
        self._tie = ClockTie()
        self._voice = Track(Ledger(WIRE_RATE, lambda: self._rtp_origin("audio")), Presentation(WIRE_RATE))
        self._face = Track(Ledger(VIDEO_RATE, lambda: self._rtp_origin("video")), Presentation(VIDEO_RATE))
        self._held, self._hidden = Spells(), Spells()
        self._concealed: deque[tuple[float, float]] = deque()
        self._reported_at: float | None = None
        """When the newest report came."""
        self._lacks: Set[str] = frozenset()
        self._speech_ends: deque[float] = deque(maxlen=_SPEECH_ENDS)
        """When the client says that its user's speech ended, on our clock."""
        self._witness = Witness()
        self._waiting: deque[tuple[TurnTrace, Mapping[str, Any]]] = deque()

    # ── what goes out ──────────────────────────────────────────────────────────────────────────

    def connected(self, rtp_origin: Callable[[str], int | None]) -> None:
        self._rtp_origin = rtp_origin

    def voice_made(self, pts: int, turn: str | None, span: tuple[float, float] | None) -> None:
        start, end = span or (0.0, 0.0)
        self._voice.ledger.made(Emitted(pts, self._clock.now(), None if span is None else turn, start, end))

    def picture_made(
        self, pts: int, at: float, turn: str | None, position: float | None, *, moving: bool
    ) -> None:
        shown = None if position is None else turn
        where = position or 0.0
        drawn_at = self._clock.now()
        self._face.ledger.made(Emitted(pts, at, shown, where, where, moving, drawn_at=drawn_at))

    def packet_sent(self, kind: str, rtp_timestamp: int) -> None:
        track = self._voice if kind == "audio" else self._face
        track.ledger.sent(rtp_timestamp, self._clock.now())

    def held(self, held: bool) -> None:
        """The reply stands still for the user, or no longer."""
        self._held.note(held, self._clock.now())

    # ── what the client says ───────────────────────────────────────────────────────────────────

    def stamped(self, stamps: ClockStamps) -> None:
        self._tie.add(ClockSample(stamps.asked, stamps.received, stamps.answered, stamps.returned))

    def speech_ended(self, client_time: float) -> None:
        """The client knows when its user's speech ended: it made it itself."""
        at = self._ours(client_time)
        if at is not None:
            self._speech_ends.append(at)

    def observed(self, observation: ClientObservation) -> None:
        """What the client played and showed, by its own clock. Ignored until the clocks are tied."""
        for track, points in ((self._voice, observation.sound), (self._face, observation.pictures)):
            for rtp_timestamp, client_time in points:
                pts, at = track.ledger.pts(rtp_timestamp), self._ours(client_time)
                if pts is not None and at is not None:
                    track.presented.add(pts, at)
        for start, end in observation.concealed:
            began, ended = self._ours(start), self._ours(end)
            if began is None or ended is None:
                continue
            if self._concealed and abs(began - self._concealed[-1][1]) < _ADJOINING:
                began, _ = self._concealed.pop()  # it goes on
            self._concealed.append((began, ended))
        while self._concealed and self._concealed[0][1] < self._clock.now() - KEPT:
            self._concealed.popleft()
        self._witness.add(at for each in observation.audible if (at := self._ours(each)) is not None)
        self._lacks = observation.lacks
        self._reported_at = self._clock.now()
        self._hidden.note(observation.hidden, self._reported_at)
        self._settle()

    def _ours(self, client_time: float) -> float | None:
        at = self._tie.ours(client_time)
        return at if at is not None and abs(at - self._clock.now()) < _AWAY else None

    # ── turns ──────────────────────────────────────────────────────────────────────────────────

    def turn_over(self, trace: TurnTrace) -> Mapping[str, Any]:
        """The server's record, as a client is told it; the whole one follows."""
        record = self._records(trace)
        self._waiting.append((trace, record))
        self._settle()
        return fitting(record)

    def close(self) -> None:
        """The call is over: nothing more will be reported."""
        while self._waiting:
            self._finish(*self._waiting.popleft())

    def _settle(self) -> None:
        while self._waiting and (len(self._waiting) > _MOST_WAITING or self._told_all(self._waiting[0][0])):
            self._finish(*self._waiting.popleft())

    def _told_all(self, trace: TurnTrace) -> bool:
        newest = self._voice.presented.newest
        if newest is None:
            return True  # a client that reports nothing is not waited for
        now = self._clock.now()
        if trace.ended_at is not None and now > trace.ended_at + _PATIENCE:
            return True
        frames = self._voice.ledger.of_turn(trace.turn_id)
        if not frames:
            return True
        ended = self._voice.at(frames[-1].pts)
        seen = self._face.presented.newest
        return ended is not None and newest >= ended and (seen is None or seen >= ended)

    def _finish(self, trace: TurnTrace, record: Mapping[str, Any]) -> None:
        points = end_points(trace, self._own_speech_end(trace), self._voice)
        client = measured(trace, points, self._voice, self._face, self._disturbances())
        tracks = {"sound": self._voice, "pictures": self._face}
        told = {kind for kind, track in tracks.items() if track.presented.newest is not None}
        bound = self._tie.bound
        self._on_measured(
            {
                **record,
                **client,
                "first_audio_witness_ms": self._witness.first_audio_ms(trace, points),
                "stages": stage_shares(trace, points),
                "stages_violated": stages_violated(trace, points, _TOLERANCE + (bound or 0.0)),
                "speech_end_by": _who_told(trace, points),
                "clock_bound_ms": None if bound is None else round(bound * 1000, 2),
                "not_measured": reasons(client, self._lacks, told),
            }
        )

    def _disturbances(self) -> Disturbances:
        now = self._clock.now()
        return Disturbances(
            held=self._held.until(now),
            lags=self._lag.recent(),
            concealed=[*self._concealed],
            hidden=self._hidden.until(now),
            frozen_until=now if self._frozen() else None,
        )

    def _frozen(self) -> bool:
        """Whether the newest report said that no picture had come for too long. What came since it, nobody
        knows: that a call ends between two reports is no freeze."""
        newest = self._face.presented.newest
        return newest is not None and self._reported_at is not None and self._reported_at - newest >= STALL

    def _own_speech_end(self, trace: TurnTrace) -> float | None:
        """The client's own word on when its user's speech ended, where there is one within this turn."""
        if trace.speech_end is None or trace.input is not TurnInput.VOICE:
            return None
        latest = trace.first_sound_at or trace.speech_end + _PATIENCE
        told = [at for at in self._speech_ends if trace.started_at < at < latest]
        return told[-1] if told else None


def _who_told(trace: TurnTrace, points: EndPoints) -> str | None:
    """When the user's speech ended: the client's word, or the server's estimate. Nobody's for a text."""
    if points.speech_end is not None:
        return "client"
    return "server" if trace.input is TurnInput.VOICE and trace.speech_end is not None else None
