"""The two tracks a session sends, voice and face, paced by one monotonic clock.

Sound is never skipped: after a stall its time stamps jump ahead and it goes on where it was. Pictures
are: a late frame is drawn for the time it is shown at.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from fractions import Fraction

import cv2
import numpy as np
from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, VideoFrame
from av.frame import Frame

from pipeline.clock import Clock
from pipeline.events import WIRE_RATE, Face, Mood, Performer, Pose, Timeline
from pipeline.webrtc.heard import HeardPosition
from pipeline.webrtc.playout import FRAME, FRAME_SECONDS, Playout

_VIDEO_RATE = 90_000
_OPEN = 0.05
"""Of the jaw, from which on a mouth is seen to be open."""
_LATE = 3 * FRAME_SECONDS
"""Behind by this much, sound no longer catches up in a burst: it would only fill jitter buffers."""


OnFault = Callable[[Exception], None]
"""Told about an exception in a track: aiortc only logs it and leaves the call mute."""


class _PacedTrack(MediaStreamTrack):
    """A track whose frame n is due at its origin + n periods."""

    def __init__(
        self, clock: Clock, origin: float, period: float, max_late: float, on_fault: OnFault | None
    ) -> None:
        super().__init__()
        self._clock = clock
        self._origin = origin
        self._period = period
        self._max_late = max_late
        self._on_fault = on_fault
        self._index = -1

    async def recv(self) -> Frame:
        return await self.frame(await self._next_index())

    async def frame(self, index: int) -> Frame:
        """The frame that is due now, `index` periods after the origin."""
        try:
            return await self._frame(index)
        except Exception as fault:
            if self._on_fault is not None:
                self._on_fault(fault)
            raise

    @abstractmethod
    async def _frame(self, index: int) -> Frame: ...

    async def _next_index(self) -> int:
        """Wait for the next frame's time; how many periods after the origin it is."""
        if self.readyState != "live":
            raise MediaStreamError
        self._index += self._stride()
        if self._index == 0 or self._late() > self._max_late:
            self._skip()
        await self._clock.sleep_until(self._due())
        while self._late() > self._max_late:  # the loop stood still while this waited
            self._skip()
            await self._clock.sleep_until(self._due())
        return self._index

    def _stride(self) -> int:
        """Periods from one frame to the next."""
        return 1

    def _due(self) -> float:
        return self._origin + self._index * self._period

    def _late(self) -> float:
        return self._clock.now() - self._due()

    def _skip(self) -> None:
        """Go on with the next frame that is not late."""
        periods = (self._clock.now() - self._origin) / self._period
        self._index = max(self._index, int(periods) + 1)


class VoiceTrack(_PacedTrack):
    """The playout, as 20 ms frames of 48 kHz mono."""

    kind = "audio"

    def __init__(
        self,
        clock: Clock,
        origin: float,
        playout: Playout,
        position: HeardPosition,
        timeline: Timeline,
        playing: Callable[[], str | None],
        *,
        on_fault: OnFault | None = None,
    ) -> None:
        """`playing`: id of the turn whose reply goes out."""
        super().__init__(clock, origin, FRAME_SECONDS, _LATE, on_fault)
        self._playout = playout
        self._position = position
        self._timeline = timeline
        self._playing = playing

    async def _frame(self, index: int) -> AudioFrame:
        frame = AudioFrame.from_ndarray(self._playout.next_frame()[None], format="s16", layout="mono")
        frame.sample_rate = WIRE_RATE
        frame.pts = index * FRAME
        frame.time_base = Fraction(1, WIRE_RATE)
        self._position.sent(frame.pts, self._playout.span, self._clock.now())
        self._timeline.voice_made(frame.pts, self._playing(), self._playout.span)
        return frame


class FaceTrack(_PacedTrack):
    """The face, drawn for the audio position that goes out at the frame's time.

    A face that does not speak is drawn half as often while the processor is wanted for another conversation.
    """

    kind = "video"

    def __init__(
        self,
        clock: Clock,
        origin: float,
        playout: Playout,
        performer: Performer,
        face: Face,
        mood: Callable[[], Mood],
        executor: Executor,
        timeline: Timeline,
        playing: Callable[[], str | None],
        *,
        wanted_elsewhere: Callable[[], bool] = lambda: False,
        fps: int = 25,
        on_fault: OnFault | None = None,
    ) -> None:
        super().__init__(clock, origin, 1 / fps, 1 / fps, on_fault)
        self._playout = playout
        self._performer = performer
        self._face = face
        self._mood = mood
        self._executor = executor
        self._timeline = timeline
        self._playing = playing
        self._wanted_elsewhere = wanted_elsewhere

    def _stride(self) -> int:
        return 2 if self._index >= 0 and self._playing() is None and self._wanted_elsewhere() else 1

    async def _frame(self, index: int) -> VideoFrame:
        now = self._clock.now()
        position, turn = self._playout.position(now), self._playing()
        pose = self._performer.pose(now, position, self._mood())
        frame = await asyncio.get_running_loop().run_in_executor(self._executor, self._draw, pose)
        frame.pts = round(index * self._period * _VIDEO_RATE)
        frame.time_base = Fraction(1, _VIDEO_RATE)
        self._timeline.picture_made(frame.pts, now, turn, position, moving=pose.jaw > _OPEN)
        return frame

    def _draw(self, pose: Pose) -> VideoFrame:
        # VP8 wants planes; converting here keeps the encode pool for encoding. OpenCV takes 0.2 ms of a
        # core for it, libswscale 1.0.
        planes = cv2.cvtColor(self._face.draw(pose), cv2.COLOR_BGR2YUV_I420)
        return VideoFrame.from_ndarray(np.asarray(planes, np.uint8), format="yuv420p")
