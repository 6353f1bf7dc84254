"""The mouth as it is shown: what is due at the audio position, without jumps."""

import math
from collections.abc import Sequence

from pipeline.render.easing import ease
from pipeline.render.mouth import REST, MouthShape, mouth_shape
from pipeline.render.visemes import VisemeSpan

CATCH_UP_S = 0.12
"""When speech breaks off, jumps or is cued anew, the mouth is where it should be after this long."""

_JUMP_S = 0.06
"""A position that runs off from the time by more than this between two frames has jumped."""

_STALL_S = 0.1
"""Speech that has not moved on for this long is silence: a mouth frozen open would look dead."""


class FollowingMouth:
    """Keeps what the last frame showed; a jump fades out of it instead of cutting."""

    def __init__(self) -> None:
        self._spans: Sequence[VisemeSpan] = ()
        self._shown = REST
        self._offset = REST
        self._offset_since = -math.inf
        self._now: float | None = None
        self._position: float | None = None
        self._advanced_at = -math.inf
        self._silent = True

    def shape(self, now: float, position: float | None, spans: Sequence[VisemeSpan]) -> MouthShape:
        """The mouth of a frame shown at `now`. `spans` is another object whenever it has changed."""
        before = self._shown if self._jumped(now, position) else None
        if before is None and spans is not self._spans:
            before = self._faded(now, self._due(position, self._spans))
        due = self._due(position, spans)
        if before is not None:
            self._offset = _sum(before, due, -1.0)
            self._offset_since = now if self._now is None else self._now
        self._shown = self._faded(now, due)
        self._now, self._position, self._spans = now, position, spans
        return self._shown

    def _jumped(self, now: float, position: float | None) -> bool:
        was_silent, was_at = self._silent, self._position
        if position != was_at:
            self._advanced_at = now
        self._silent = position is None or now - self._advanced_at >= _STALL_S
        if self._silent or was_silent:
            return self._silent is not was_silent
        if position is None or was_at is None or self._now is None or position == was_at:
            return False
        return abs((position - was_at) - (now - self._now)) > _JUMP_S

    def _due(self, position: float | None, spans: Sequence[VisemeSpan]) -> MouthShape:
        return REST if position is None or self._silent else mouth_shape(spans, position)

    def _faded(self, now: float, due: MouthShape) -> MouthShape:
        left = 1.0 - ease((now - self._offset_since) / CATCH_UP_S)
        return _sum(due, self._offset, left) if left > 0.0 else due


def _sum(a: MouthShape, b: MouthShape, factor: float) -> MouthShape:
    return MouthShape(*(x + factor * y for x, y in zip(a, b, strict=True)))
