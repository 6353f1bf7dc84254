import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clock import VirtualClock
from pipeline.events import WIRE_RATE
from pipeline.webrtc.heard import DEFAULT_DELAY, REPORT_LIFETIME, HeardPosition
from pipeline.webrtc.playout import FRAME, FRAME_SECONDS, Playout
from pipeline.webrtc.reply import Reply
from tests.pipeline.webrtc.playing import Notes, speak, speech


class Call:
    """A playout whose frames go out in real time to a client `delay` seconds behind."""

    def __init__(self, delay: float = 0.25, origin: int | None = 1000) -> None:
        self.playout = Playout(VirtualClock(), Notes())
        self.delay = delay
        self.origin = origin
        self.heard_position = HeardPosition(lambda: self.origin)
        self.pts = 0
        self.connected_at = 0.0
        self.now = 0.0

    async def speak(self, seconds: float) -> Reply:
        """One long reply of words of 0.2 s."""
        words = [(str(i), i * 0.2, (i + 1) * 0.2) for i in range(round(seconds / 0.2))]
        reply = await speak(speech(np.ones(round(seconds * WIRE_RATE), np.int16), *words))
        self.playout.play(reply)
        self.heard_position.begin()
        return reply

    def play(self, seconds: float, *, stalled: bool = False) -> None:
        for _ in range(round(seconds / FRAME_SECONDS)):
            if not stalled:
                self.playout.next_frame()
                self.heard_position.sent(self.pts, self.playout.span, self.now)
            self.pts += FRAME
            self.now += FRAME_SECONDS

    def report(self) -> None:
        played = round((self.now - self.connected_at - self.delay) * WIRE_RATE)
        self.heard_position.report((played + (self.origin or 0)) % 2**32, self.now)

    def reconnect(self) -> None:
        self.pts, self.connected_at = 0, self.now

    def heard(self) -> float:
        return self.heard_position.heard(self.now)


async def test_without_reports_a_usual_delay_is_assumed() -> None:
    call = Call()
    await call.speak(5.0)
    assert call.heard() == 0.0
    call.play(0.06)
    assert call.heard() == 0.0, "the first sample is still on its way"
    call.play(0.94)
    assert call.heard() == pytest.approx(1.0 - DEFAULT_DELAY)


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.25, 1.2])
@pytest.mark.parametrize("origin", [0, 2**32 - 20_000, 2**31])
async def test_a_report_is_extrapolated_in_real_time(delay: float, origin: int) -> None:
    call = Call(delay, origin)
    await call.speak(5.0)
    call.play(1.4)
    call.report()
    assert call.heard() == pytest.approx(1.4 - delay, abs=1e-4)
    call.play(1.0)
    assert call.heard() == pytest.approx(2.4 - delay, abs=1e-4)


async def test_an_old_report_says_nothing() -> None:
    call = Call(delay=0.5)
    await call.speak(5.0)
    call.play(1.0)
    call.report()
    call.play(REPORT_LIFETIME - 0.1)
    assert call.heard() == pytest.approx(2.4, abs=1e-4)
    call.play(0.2)
    assert call.heard() == pytest.approx(3.1 - DEFAULT_DELAY)


async def test_never_beyond_what_went_out() -> None:
    call = Call(delay=0.0)
    await call.speak(0.5)
    call.play(0.4)
    call.report()
    call.play(1.0, stalled=True)
    assert call.heard() == pytest.approx(0.4)
    call.play(1.0)
    assert call.heard() == pytest.approx(0.5)


async def test_what_was_heard_stays_heard() -> None:
    call = Call(delay=0.1)
    await call.speak(5.0)
    call.play(1.0)
    call.report()
    assert call.heard() == pytest.approx(0.9, abs=1e-4)
    call.delay = 0.3
    call.report()
    assert call.heard() == pytest.approx(0.9, abs=1e-4)
    call.play(0.4)
    assert call.heard() == pytest.approx(1.1, abs=1e-4)


async def test_the_last_words_of_a_reply_are_heard_after_they_went_out() -> None:
    call = Call(delay=0.3)
    await call.speak(1.0)
    call.play(1.0)
    call.report()
    assert call.heard() == pytest.approx(0.7, abs=1e-4)
    call.play(0.2)
    assert call.heard() == pytest.approx(0.9, abs=1e-4)
    call.play(0.2)
    assert call.heard() == pytest.approx(1.0)


async def test_held_it_stands_still_and_resumed_it_goes_back_when_the_client_hears_that() -> None:
    call = Call(delay=0.1)
    reply = await call.speak(2.0)
    call.play(1.08)
    call.report()
    call.playout.hold()
    call.play(0.06)
    assert call.heard() == pytest.approx(1.04, abs=1e-4), "the rest is on its way"
    call.play(1.0)
    assert call.heard() == pytest.approx(1.08)
    call.report()
    call.playout.resume()  # in the word from 1.0 to 1.2
    call.play(0.08)
    assert call.heard() == pytest.approx(1.08)
    call.play(0.06)
    assert call.heard() == pytest.approx(1.04, abs=1e-4)
    assert reply.heard_text(call.heard()) == "0 1 2 3 4"
    call.play(0.08)
    assert reply.heard_text(call.heard()) == "0 1 2 3 4 5"


async def test_a_long_hold_forgets_no_position() -> None:
    call = Call()
    await call.speak(2.0)
    call.play(1.0)
    call.playout.hold()
    call.play(60.0)
    assert call.heard() == pytest.approx(1.0)


async def test_of_the_next_reply_nothing_was_heard() -> None:
    call = Call(delay=0.2)
    await call.speak(5.0)
    call.play(2.0)
    call.report()
    call.playout.stop()
    await call.speak(5.0)
    call.play(0.1)
    assert call.heard() == 0.0
    call.play(0.5)
    assert call.heard() == pytest.approx(0.4 - FRAME_SECONDS, abs=1e-4), "its first frame was the fade"


async def test_a_report_that_cannot_be_right_is_ignored() -> None:
    call = Call(delay=0.2)
    await call.speak(5.0)
    call.heard_position.report(77, call.now)  # nothing went out yet
    call.play(1.0)
    for stamp in (1000 + call.pts + 1, 1000 + call.pts + 10 * WIRE_RATE, 2**31, 999, 2**32 - 1):
        call.heard_position.report(stamp, call.now)
    assert call.heard() == pytest.approx(1.0 - DEFAULT_DELAY)
    call.origin = None
    call.report()
    assert call.heard() == pytest.approx(1.0 - DEFAULT_DELAY)


async def test_a_client_seconds_behind() -> None:
    call = Call(delay=4.5)
    await call.speak(9.0)
    call.play(8.0)
    call.report()
    assert call.heard() == pytest.approx(3.5, abs=1e-4)


async def test_a_report_from_before_what_is_remembered_is_ignored() -> None:
    call = Call(delay=5.5)
    await call.speak(9.0)
    call.play(8.0)
    call.report()
    assert call.heard() == pytest.approx(8.0 - DEFAULT_DELAY)


async def test_another_connection_counts_anew() -> None:
    call = Call(delay=0.2)
    await call.speak(9.0)
    call.play(2.0)
    call.report()
    call.reconnect()
    call.origin = 4_000_000_000
    call.play(0.1)
    assert call.heard() == pytest.approx(2.0), "what went out before counts as heard"
    call.play(0.9)
    call.report()
    assert call.heard() == pytest.approx(2.8, abs=1e-4)


@given(st.lists(st.sampled_from(["play", "play", "play", "late", "early", "hold", "resume", "stall"])))
async def test_whatever_is_reported_positions_only_go_back_where_the_reply_did(steps: list[str]) -> None:
    call = Call(delay=0.2)
    reply = await call.speak(9.0)
    resumed = False
    heard, furthest = 0.0, 0.0
    for step in steps:
        match step:
            case "play":
                call.play(0.06)
            case "stall":
                call.play(0.06, stalled=True)
            case "late" | "early":
                call.delay = 0.4 if step == "late" else 0.0
                call.report()
            case "hold":
                call.playout.hold()
            case "resume":
                resumed = True
                call.playout.resume()
        now_heard = call.heard()
        assert now_heard >= heard or resumed
        furthest = max(furthest, reply.position)
        assert now_heard <= furthest + 1e-9
        heard = now_heard
