"""How much of a reply the client has really played.

A `visavis.playout` report names the sample the client was playing, by its RTP time stamp. Between
reports a client plays on in real time. What a report takes to arrive is not known and not added, so the
position errs on the early side by it. All of it is reckoned in pts, the samples of silence and speech
that the audio track has sent, which only ever rise: a position goes back only where what was sent did.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.events import WIRE_RATE
from pipeline.webrtc.playout import FRAME

REPORT_LIFETIME = 2.0
"""Seconds after which a report says nothing about now."""

DEFAULT_DELAY = 0.1
"""Seconds from a frame's going out to its being heard, by a client that reports nothing. Chromium on
loopback takes 0.08 to 0.09 to its loudspeaker (20 to 30 ms of jitter buffer, 30 ms of device)."""

_KEPT = 5.0
"""Seconds of what went out that are remembered; a client further behind counts as this far behind."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A frame with speech in it."""

    pts: int
    start: float
    end: float
    """Audio positions."""


class HeardPosition:
    """Told of every frame that goes out and of every report; knows the position heard.

    `origin` is the sender's: RTP time stamp = (pts + origin) mod 2³²; None while nothing is sent.
    """

    def __init__(self, origin: Callable[[], int | None]) -> None:
        self._origin = origin
        self._sent: deque[_Sent] = deque()
        self._before = 0.0
        """The position heard by the first of them."""
        self._last: tuple[int, float] | None = None
        """The last frame's pts, and when it went out."""
        self._report: tuple[int, float] | None = None
        """The pts that was being played, and when it was said so."""
        self._heard = 0.0
        """The pts heard at least."""

    def begin(self) -> None:
        """Another reply goes out from here on; nothing of it was heard."""
        self._sent.clear()
        self._before = 0.0

    def sent(self, pts: int, span: tuple[float, float] | None, now: float) -> None:
        """A frame goes out; `span` as in `Playout.span`. A pts that goes back begins a new connection."""
        if self._last is not None and pts <= self._last[0]:
            self._reconnected()
        self._last = pts, now
        if span is not None:
            self._sent.append(_Sent(pts, *span))
        while self._sent and self._sent[0].pts < pts - _KEPT * WIRE_RATE:
            self._before = self._sent.popleft().end

    def report(self, rtp_timestamp: int, now: float) -> None:
        """What the client was playing. One that names a sample that was not sent lately is ignored."""
        origin = self._origin()
        if origin is None or self._last is None:
            return
        last, _ = self._last
        pts = last + (rtp_timestamp - origin - last + 2**31) % 2**32 - 2**31
        if max(0, last - _KEPT * WIRE_RATE) <= pts <= last + FRAME:
            self._report = pts, now

    def heard(self, now: float) -> float:
        """The audio position the client has played by `now`: never beyond what went out."""
        if self._last is None:
            return self._before
        self._heard = max(self._heard, self._playing(*self._last, now))
        for frame in reversed(self._sent):
            if frame.pts <= self._heard:
                return min(frame.start + (self._heard - frame.pts) / WIRE_RATE, frame.end)
        return self._before

    def _playing(self, last: int, last_at: float, now: float) -> float:
        """The pts that is being played."""
        if self._report is not None and now - self._report[1] <= REPORT_LIFETIME:
            reported, reported_at = self._report
            return reported + (now - reported_at) * WIRE_RATE
        return last + (now - last_at - DEFAULT_DELAY) * WIRE_RATE

    def _reconnected(self) -> None:
        if self._sent:
            self._before = self._sent[-1].end
        self._sent.clear()
        self._report = None
        self._heard = 0.0
