import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError
from av import VideoFrame

from pipeline.clock import VirtualClock
from pipeline.events import Image, Mood, Pose, SpeechChunk
from pipeline.webrtc.heard import HeardPosition
from pipeline.webrtc.playout import Playout
from pipeline.webrtc.reply import HeardWord, Reply
from pipeline.webrtc.tracks import FaceTrack, VoiceTrack
from tests.pipeline.observed_call import BlockableClock
from tests.unobserved import Unobserved


class Here(Executor):
    """Runs at once, so that no virtual time passes meanwhile."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*args, **keywords))
        return done


class Deaf:
    def reply_started(self, reply: Reply) -> None: ...

    def word_started(self, reply: Reply, word: HeardWord) -> None: ...


class Blank:
    width = height = 16

    def draw(self, pose: Pose) -> Image:
        return np.zeros((16, 16, 3), np.uint8)


class Still:
    def __init__(self) -> None:
        self.asked: list[tuple[float, float | None, Mood]] = []

    def cue(self, chunk: SpeechChunk, at: float) -> None: ...

    def clear(self) -> None: ...

    def pose(self, now: float, position: float | None, mood: Mood) -> Pose:
        self.asked.append((now, position, mood))
        return Pose()


async def stamps(track: VoiceTrack | FaceTrack, clock: VirtualClock, count: int) -> list[int]:
    """Time stamps of the next frames, the clock running freely."""
    found: list[int] = []
    for _ in range(count):
        task = asyncio.create_task(track.recv())
        while not task.done():
            await clock.advance(0.001)
        found.append((await task).pts)
    return found


async def test_sound_is_due_every_20_ms() -> None:
    clock = VirtualClock(100.0)
    track = VoiceTrack(
        clock, 100.0, Playout(clock, Deaf()), HeardPosition(lambda: None), Unobserved(), lambda: None
    )
    pts = await stamps(track, clock, 10)
    assert np.diff(pts).tolist() == [960] * 9
    assert clock.now() == pytest.approx(100.0 + (pts[-1] / 48_000), abs=0.002)


async def test_a_short_stall_is_made_up_and_a_long_one_is_skipped() -> None:
    clock = VirtualClock()
    track = VoiceTrack(
        clock, 0.0, Playout(clock, Deaf()), HeardPosition(lambda: None), Unobserved(), lambda: None
    )
    await stamps(track, clock, 3)
    await clock.advance(0.04)
    assert np.diff(await stamps(track, clock, 4)).tolist() == [960] * 3
    last = (await stamps(track, clock, 1))[0]
    await clock.advance(2.0)
    after = (await stamps(track, clock, 2))[0]
    assert after / 48_000 == pytest.approx(clock.now(), abs=0.05)
    assert after - last > 90 * 960
    assert after % 960 == 0


async def test_the_face_is_drawn_for_the_time_it_is_shown_at_and_never_in_a_burst() -> None:
    clock = VirtualClock()
    performer = Still()
    track = FaceTrack(
        clock,
        0.0,
        Playout(clock, Deaf()),
        performer,
        Blank(),
        lambda: Mood.IDLE,
        Here(),
        Unobserved(),
        lambda: None,
        fps=25,
    )
    first = await stamps(track, clock, 5)
    await clock.advance(1.0)
    after = await stamps(track, clock, 5)
    assert np.diff(first).tolist() == [3600] * 4
    assert np.diff(after).tolist() == [3600] * 4
    assert after[0] - first[-1] >= 24 * 3600
    assert all(position is None and mood is Mood.IDLE for _, position, mood in performer.asked)


async def test_a_silent_face_is_drawn_half_as_often_while_another_conversation_wants_the_processor() -> None:
    clock = VirtualClock()
    playing: list[str | None] = [None]
    wanted = [True]
    track = FaceTrack(
        clock,
        0.0,
        Playout(clock, Deaf()),
        Still(),
        Blank(),
        lambda: Mood.IDLE,
        Here(),
        Unobserved(),
        lambda: playing[0],
        wanted_elsewhere=lambda: wanted[0],
    )
    await stamps(track, clock, 1)
    assert np.diff(await stamps(track, clock, 4)).tolist() == [7200] * 3
    playing[0] = "a turn"
    await stamps(track, clock, 1)
    assert np.diff(await stamps(track, clock, 4)).tolist() == [3600] * 3
    playing[0], wanted[0] = None, False
    assert np.diff(await stamps(track, clock, 4)).tolist() == [3600] * 3


class Red(Blank):
    def draw(self, pose: Pose) -> Image:
        return np.full((16, 16, 3), (40, 60, 200), np.uint8)


async def test_a_picture_keeps_its_colours() -> None:
    clock = VirtualClock()
    playout, face = Playout(clock, Deaf()), Red()
    track = FaceTrack(
        clock, 0.0, playout, Still(), face, lambda: Mood.IDLE, Here(), Unobserved(), lambda: None
    )
    frame = await track.frame(0)
    assert isinstance(frame, VideoFrame)
    assert frame.format.name == "yuv420p"
    off = frame.to_ndarray(format="bgr24").astype(int) - face.draw(Pose())
    assert np.abs(off).max() <= 3


async def test_a_stopped_track_gives_no_more() -> None:
    clock = VirtualClock()
    track = VoiceTrack(
        clock, 0.0, Playout(clock, Deaf()), HeardPosition(lambda: None), Unobserved(), lambda: None
    )
    track.stop()
    with pytest.raises(MediaStreamError):
        await track.recv()


async def test_sound_for_which_the_loop_wakes_late_is_skipped_as_well() -> None:
    clock = BlockableClock()
    track = VoiceTrack(
        clock, 0.0, Playout(clock, Deaf()), HeardPosition(lambda: None), Unobserved(), lambda: None
    )
    before = (await stamps(track, clock, 3))[-1]
    waiting = asyncio.create_task(track.recv())
    await clock.advance(0.001)
    clock.block(0.2)
    while not waiting.done():
        await clock.advance(0.001)
    after = (await waiting).pts
    assert after - before == 11 * 960
    assert clock.now() == pytest.approx(after / 48_000, abs=0.002), "none goes out with an old time stamp"
