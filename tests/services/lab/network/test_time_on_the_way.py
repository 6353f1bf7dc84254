"""Sound that is late against the picture, and wall clocks that are set, in real calls."""

import asyncio
import threading
import time
from datetime import datetime, timedelta, tzinfo
from typing import Any, Self

import aiortc.clock
import pytest
from aiortc.rtp import RtpPacket
from av.frame import Frame

import pipeline.clock
from pipeline import session
from pipeline.clock import MonotonicClock
from pipeline.timeline import record as turn_record
from pipeline.webrtc.tracks import VoiceTrack
from services.lab.arrivals import PLAYOUT, SoundTap, tap
from services.lab.playout_buffer import PlayoutBuffer
from services.lab.synthetic_user import SyntheticUser
from tests.scripted_call import scripted_call
from tests.steadiness import on_a_steady_machine

pytestmark = [pytest.mark.loopback, pytest.mark.proof]

LATE = 0.1


# ── skew ───────────────────────────────────────────────────────────────────────────────────────


class LateVoice(VoiceTrack):
    """Its frames go out `late` seconds after they were made."""

    late = 0.0

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self._made: asyncio.Queue[tuple[float, Frame]] = asyncio.Queue()
        self._making: asyncio.Task[None] | None = None

    async def recv(self) -> Frame:
        if self._making is None:
            self._making = asyncio.create_task(self._make())
        at, frame = await self._made.get()
        await self._clock.sleep_until(at + self.late)
        return frame

    async def _make(self) -> None:
        while True:
            frame = await super().recv()
            self._made.put_nowait((self._clock.now(), frame))

    def stop(self) -> None:
        if self._making is not None:
            self._making.cancel()
        super().stop()


class LateTap:
    """In the place of a client's tap: packets of sound come LATE, those of pictures do not."""

    def __init__(self, ear: SoundTap) -> None:
        self._ear = ear

    def add(self, packet: RtpPacket) -> tuple[bool, None]:
        asyncio.get_running_loop().call_later(LATE, self._ear.add, packet)
        return False, None


def delay_sound_behind_the_wire(user: SyntheticUser) -> None:
    (audio,) = (each for each in user._connection.getTransceivers() if each.kind == "audio")
    tap(audio.receiver, LateTap(user.sound))  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["before emission", "after it"])
@on_a_steady_machine
async def test_sound_that_is_late_is_skew(where: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "VoiceTrack", LateVoice)
        usual, record = await _usual_and_late(where, patch)
    late = record["av_skew_ms"]
    assert abs(usual["p50"]) < 10
    assert late["p50"] - usual["p50"] == pytest.approx(1000 * LATE, abs=10)
    assert late["p95"] - usual["p95"] == pytest.approx(1000 * LATE, abs=10)
    assert record["speech_gaps"] == []


async def _usual_and_late(where: str, patch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The usual skew, and the record of a turn whose sound was late."""
    async with scripted_call() as call:
        usual = (await call.turn())["av_skew_ms"]
        if where == "before emission":
            patch.setattr(LateVoice, "late", LATE)
        else:
            delay_sound_behind_the_wire(call.user)
        await call.turn()
        # Else the client's buffer goes by the sooner packets from before, for ten seconds.
        call.user._player = PlayoutBuffer()
        return usual, await call.turn()


# ── wall clocks ────────────────────────────────────────────────────────────────────────────────


def set_wall_clock(monkeypatch: pytest.MonkeyPatch, thread: int | None, step: float) -> None:
    """Set the date, of everything that runs in one thread, by `step` seconds."""
    true_time, true_date = time.time, aiortc.clock.current_datetime

    def by() -> float:
        return step if threading.get_ident() == thread else 0.0

    class Date(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(seconds=by())

    monkeypatch.setattr(time, "time", lambda: true_time() + by())
    monkeypatch.setattr(aiortc.clock, "current_datetime", lambda: true_date() + timedelta(seconds=by()))
    for module in (pipeline.clock, turn_record):
        monkeypatch.setattr(module, "datetime", Date)


@pytest.mark.parametrize("whose", ["the server's", "the client's"])
@pytest.mark.parametrize("step", [5.0, -5.0])
@on_a_steady_machine
async def test_a_wall_clock_that_is_set_in_mid_reply_changes_nothing(step: float, whose: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        await _call_with(step, whose, patch)


async def _call_with(step: float, whose: str, patch: pytest.MonkeyPatch) -> None:
    async with scripted_call() as call:
        call.say()
        await call.until_heard("asking")
        thread = call.server.thread if whose == "the server's" else threading.get_ident()
        set_wall_clock(patch, thread, step)
        for ended in (call.record, call.turn):
            record = await ended()
            assert record["speech_gaps"] == []
            assert len(record["render_freezes"]) <= len(call.stills()), "a busy machine has some"
            assert record["total_ms"] == pytest.approx(call.usual["total_ms"], abs=500)
            assert record["av_skew_ms"]["p50"] == pytest.approx(call.usual["av_skew_ms"]["p50"], abs=10)
            assert record["clock_bound_ms"] < 20
        assert record["time_to_first_audio_ms"] == pytest.approx(call.first_audio + 1000 * PLAYOUT, abs=20)


async def test_the_wall_clock_that_is_set_here_is_one_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test before proves nothing: a clock that went by the date would be off."""
    monkeypatch.setattr(MonotonicClock, "now", lambda self: time.time())
    clock, before = MonotonicClock(), time.time()
    set_wall_clock(monkeypatch, threading.get_ident(), 5.0)
    assert clock.now() - before == pytest.approx(5.0, abs=1.0)
    assert datetime.fromisoformat(pipeline.clock.wall_time()).timestamp() == pytest.approx(time.time(), abs=1)
