"""What went out and when: RTP time stamp ↔ our clock ↔ audio position, for one track.

A client names what it played or showed by RTP time stamp, the only name that survives the way there. The
ledger says what that was: of which turn's reply, which position in it, when it was made and when it left.
Inside, everything is reckoned in pts, which the track itself counts and which never wrap.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

KEPT = 40.0
"""Seconds of what went out that are remembered: a reply of the longest kind and the reports on its end."""


@dataclass(slots=True)
class Emitted:
    """A frame that went out."""

    pts: int
    made_at: float
    """When it was taken from the playout, or its drawing began."""
    turn: str | None
    """Of whose reply it is; None for silence and an idle face."""
    start: float
    end: float
    """Audio positions that it covers; a picture has one, and both are the same."""
    moving: bool = False
    """Of a picture: the mouth is open."""
    sent_at: float | None = None
    """When its last packet left; None while it has not."""
    drawn_at: float | None = None
    """Of a picture: its drawing was over."""
    follows: int | None = None
    """pts of the frame that was made before it; what lies between was skipped."""


class Ledger:
    """Told of every frame when it is made and of every packet when it leaves."""

    def __init__(self, rate: int, origin: Callable[[], int | None]) -> None:
        """`rate`: ticks a second, of pts and RTP alike. `origin`: RTP time stamp = (pts + origin) mod 2**32;
        None while nothing was sent."""
        self.rate = rate
        self._origin = origin
        self._frames: deque[Emitted] = deque()

    def made(self, frame: Emitted) -> None:
        """A frame was made. A pts that goes back begins a new connection."""
        if self._frames and frame.pts <= self._frames[-1].pts:
            self._frames.clear()
        if self._frames:
            frame.follows = self._frames[-1].pts
        self._frames.append(frame)
        while self._frames[0].made_at < frame.made_at - KEPT:
            self._frames.popleft()

    def sent(self, rtp_timestamp: int, at: float) -> None:
        """A packet left."""
        pts = self.pts(rtp_timestamp)
        frame = None if pts is None else self.frame(pts)
        if frame is not None and frame.pts == pts:
            frame.sent_at = at

    def pts(self, rtp_timestamp: int) -> int | None:
        """What a time stamp is in pts: the one nearest to the newest frame's."""
        origin = self._origin()
        if origin is None or not self._frames:
            return None
        newest = self._frames[-1].pts
        return newest + (rtp_timestamp - origin - newest + 2**31) % 2**32 - 2**31

    def frame(self, pts: int) -> Emitted | None:
        """The frame that holds it; None when that is not remembered."""
        index = bisect_right(self._frames, pts, key=lambda frame: frame.pts) - 1
        return self._frames[index] if index >= 0 else None

    def of_turn(self, turn: str) -> list[Emitted]:
        """The frames of one reply, in order."""
        return [frame for frame in self._frames if frame.turn == turn]

    def widest(
        self, first: int, last: int | None, time: Callable[[Emitted], float | None], end: float
    ) -> float:
        """The longest time between two neighbours of the frames from one pts to another; 0 for fewer.

        `last` None: to the newest frame, and from that to `end`.
        """
        times = [
            at
            for frame in self._frames
            if first <= frame.pts and (last is None or frame.pts <= last) and (at := time(frame)) is not None
        ]
        if last is None:
            times.append(end)
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)
