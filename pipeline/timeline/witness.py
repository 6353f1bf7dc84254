"""A second witness of when a reply was heard: runs of audible sound that the client's energy gate noticed.

What the ledgers reckon from time stamps is not used for it, so that the two can bear each other out.
"""

from collections import deque
from collections.abc import Iterable

from pipeline.events import TurnTrace
from pipeline.timeline.record import EndPoints

_KEPT = 256
"""Runs, those of a long reply."""

_WITHIN = 1.0
"""Seconds from leaving to being heard; what becomes audible later is another word."""


class Witness:
    """Told when runs of audible sound began, on our clock."""

    def __init__(self) -> None:
        self._onsets: deque[float] = deque(maxlen=_KEPT)

    def add(self, onsets: Iterable[float]) -> None:
        """Runs that began since the last ones."""
        self._onsets.extend(onsets)

    def first_audio_ms(self, trace: TurnTrace, points: EndPoints) -> float | None:
        """User speech end → the first onset after the reply's own words had left; None without one."""
        speech_end = trace.speech_end if points.speech_end is None else points.speech_end
        sent = trace.first_audio_at if points.sent is None else points.sent
        if speech_end is None or sent is None:
            return None
        heard = next((at for at in self._onsets if sent < at < sent + _WITHIN), None)
        return None if heard is None else round((heard - speech_end) * 1000, 1)
