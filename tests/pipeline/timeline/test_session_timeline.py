"""A session's timeline in virtual time: a server that plays and draws, a client that tells what it got."""

from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.clock import VirtualClock
from pipeline.events import ClientObservation, ClockStamps, Span, Stage, TurnInput, TurnTrace
from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.session_timeline import SessionTimeline

OFFSET = 500.0
"""The client's clock is behind ours by this."""

ORIGIN = {"audio": 4_294_000_000, "video": 77}


class Call:
    """20 ms frames of sound and 40 ms pictures; a client that gets them `delay` seconds later."""

    def __init__(self, delay: float = 0.1, picture_delay: float = 0.1) -> None:
        self.clock = VirtualClock(1000.0)
        self.lag = LoopLag(self.clock)
        self.measured: list[Mapping[str, Any]] = []
        self.timeline = SessionTimeline(self.clock, {}, self.lag, self.measured.append)
        self.timeline.connected(lambda kind: ORIGIN[kind])
        self.delay, self.picture_delay = delay, picture_delay
        self.reporting = True
        self.hidden = False
        self.pts = 0
        self.position = 0.0
        self.sound: list[tuple[int, float]] = []
        self.pictures: list[tuple[int, float]] = []
        self.trace = TurnTrace("t1", "s1", TurnInput.VOICE, 999.0, speech_end=1000.0, committed_revision=1)
        self.trace.clause_times = [(0.0, 1000.1, 1000.2)]
        self.trace.first_sound = self.trace.first_audible = 0.0

    def tie(self) -> None:
        now = self.clock.now()
        self.timeline.stamped(ClockStamps(now - OFFSET - 0.001, now, now, now - OFFSET + 0.001))

    async def play(
        self,
        seconds: float,
        *,
        speaking: bool = True,
        drawn: bool = True,
        arrives: bool = True,
        shown: bool = True,
    ) -> None:
        for _ in range(round(seconds / 0.02)):
            now = self.clock.now()
            span = (self.position, self.position + 0.02) if speaking else None
            self.timeline.voice_made(self.pts, "t1", span)
            stamp = (self.pts + ORIGIN["audio"]) % 2**32
            self.timeline.packet_sent("audio", stamp)
            if arrives:
                self.sound.append((stamp, now + self.delay - OFFSET))
            if drawn and self.pts % 1920 == 0:
                picture = self.pts * 90_000 // 48_000
                position = self.position if speaking else None
                self.timeline.picture_made(picture, now, "t1", position, moving=speaking)
                stamp = (picture + ORIGIN["video"]) % 2**32
                self.timeline.packet_sent("video", stamp)
                if shown:
                    self.pictures.append((stamp, now + self.picture_delay - OFFSET))
            self.pts += 960
            if speaking:
                self.position += 0.02
                if self.trace.first_audio_at is None:
                    self.trace.first_sound_at = self.trace.first_audio_at = now
            await self.clock.advance(0.02)
            if self.reporting and self.pts % 9600 == 0:
                self.report()

    def report(self) -> None:
        self.timeline.observed(ClientObservation(tuple(self.sound), tuple(self.pictures), hidden=self.hidden))
        self.sound.clear()
        self.pictures.clear()

    async def over(self) -> Mapping[str, Any]:
        self.trace.ended_at = self.clock.now()
        self.timeline.turn_over(self.trace)
        await self.play(0.4, speaking=False)
        self.report()
        (record,) = self.measured
        return record


async def test_a_smooth_turn() -> None:
    call = Call()
    call.tie()
    await call.play(0.4, speaking=False)
    await call.play(2.0)
    record = await call.over()
    assert record["time_to_first_audio_ms"] == pytest.approx(500, abs=1)
    assert record["time_to_first_frame_ms"] == pytest.approx(500, abs=41)
    assert (record["speech_gaps"], record["render_freezes"]) == ([], [])
    assert record["av_skew_ms"] == {
        "p50": pytest.approx(0, abs=1),
        "p95": pytest.approx(0, abs=1),
        "max_abs": pytest.approx(0, abs=1),
    }
    assert record["stages"]["shares_ms"]["playout"] == pytest.approx(100, abs=1)


async def test_a_filler_is_the_first_sound_and_not_the_first_audio() -> None:
    call = Call()
    call.tie()
    call.trace.first_sound, call.trace.first_audible = 0.1, 1.0
    await call.play(0.4, speaking=False)
    await call.play(2.0)
    record = await call.over()
    assert record["time_to_first_sound_ms"] == pytest.approx(600, abs=1)
    assert record["time_to_first_audio_ms"] == pytest.approx(1500, abs=1)


async def test_the_shares_add_up_to_the_wait() -> None:
    call = Call()
    call.tie()
    call.trace.spans = [
        Span(Stage.ENDPOINTING, 1000.0, 1000.2, 1),
        Span(Stage.ASR, 1000.05, 1000.15, 1),
        Span(Stage.PREFILL, 1000.15, 1000.25, 1),
        Span(Stage.TTS, 1000.25, 1000.35, 1),
    ]
    await call.play(0.4, speaking=False)
    await call.play(1.0)
    record = await call.over()
    shares = [share for share in record["stages"]["shares_ms"].values() if share is not None]
    assert sum(shares) == pytest.approx(record["time_to_first_audio_ms"], abs=1)


@pytest.mark.parametrize("before_emission", [True, False])
async def test_sound_that_is_late_by_100_ms_is_a_skew_of_100_ms(before_emission: bool) -> None:
    call = Call(delay=0.1 if before_emission else 0.2)
    call.tie()
    await call.play(0.4, speaking=False)
    await call.play(2.0)
    if before_emission:
        # The face ran ahead: pictures were drawn for positions that went out 100 ms later.
        call = Call(delay=0.1, picture_delay=0.0)
        call.tie()
        await call.play(0.4, speaking=False)
        await call.play(2.0)
    record = await call.over()
    assert record["av_skew_ms"]["p50"] == pytest.approx(100, abs=2)


async def test_a_reply_that_ran_dry_has_a_gap_of_that_length_and_cause() -> None:
    call = Call()
    call.tie()
    await call.play(0.4, speaking=False)
    await call.play(1.0)
    dry = call.clock.now()
    await call.play(0.36, speaking=False)
    call.trace.clause_times.append((call.position, dry - 1.0, call.clock.now()))
    await call.play(1.0)
    (gap,) = (await call.over())["speech_gaps"]
    assert gap == {
        "at_ms": pytest.approx(1000, abs=2),
        "duration_ms": pytest.approx(360, abs=1),
        "cause": "tts",
    }


async def test_a_face_that_stood_still_is_a_freeze() -> None:
    call = Call()
    call.tie()
    await call.play(2.0, speaking=False)
    await call.play(1.0)
    await call.play(0.4, drawn=False)
    await call.play(1.0)
    (freeze,) = (await call.over())["render_freezes"]
    assert freeze["duration_ms"] == pytest.approx(440, abs=41)
    assert (freeze["cause"], freeze["w3c"]) == ("render", True)


async def test_a_client_that_says_nothing_gives_nulls_and_is_not_waited_for() -> None:
    call = Call()
    call.reporting = False
    await call.play(1.0)
    call.trace.ended_at = call.clock.now()
    call.timeline.turn_over(call.trace)
    (record,) = call.measured
    assert record["time_to_first_audio_ms"] is None
    assert record["render_freezes"] is None
    assert record["av_skew_ms"] is None


async def test_a_hang_up_ends_the_wait() -> None:
    call = Call()
    call.tie()
    await call.play(1.0)
    call.report()
    call.trace.ended_at = call.clock.now()
    call.timeline.turn_over(call.trace)
    assert call.measured == []
    call.timeline.close()
    assert len(call.measured) == 1


async def test_sound_that_did_not_come_is_one_gap_however_many_reports_tell_of_it() -> None:
    call = Call()
    call.tie()
    await call.play(1.0)
    missed = call.clock.now() - OFFSET
    for start, end in ((0.0, 0.12), (0.12, 0.2)):
        stretch = (missed + start, missed + end)
        call.timeline.observed(ClientObservation(concealed=(stretch,)))
    await call.play(1.0)
    (gap,) = (await call.over())["speech_gaps"]
    assert (gap["duration_ms"], gap["cause"]) == (pytest.approx(200, abs=1), "network")


async def test_concealed_sound_is_remembered_however_often_it_happens() -> None:
    call = Call()
    call.tie()
    await call.play(1.0)
    missed = call.clock.now() - OFFSET
    call.timeline.observed(ClientObservation(concealed=((missed, missed + 0.2),)))
    await call.play(1.0)
    for _ in range(100):
        await call.play(0.1)
        now = call.clock.now() - OFFSET
        call.timeline.observed(ClientObservation(concealed=((now, now + 0.005),)))
    (gap,) = (await call.over())["speech_gaps"]
    assert gap["duration_ms"] == pytest.approx(200, abs=1)


async def test_a_moment_far_from_now_is_none() -> None:
    call = Call()
    call.tie()
    await call.play(0.4, speaking=False)
    call.sound.append(((call.pts + ORIGIN["audio"]) % 2**32, 1e9))
    await call.play(1.0)
    record = await call.over()
    assert record["time_to_first_audio_ms"] == pytest.approx(500, abs=1)


async def test_a_picture_that_stopped_long_before_a_reply_is_a_freeze() -> None:
    call = Call()
    call.tie()
    await call.play(2.0, speaking=False)
    await call.play(5.0, speaking=False, shown=False)
    await call.play(1.0, shown=False)
    await call.play(0.2)
    (freeze,) = (await call.over())["render_freezes"]
    assert freeze["duration_ms"] == pytest.approx(6000, abs=81)
    assert freeze["w3c"]


async def test_a_picture_that_was_not_shown_is_not_the_first_one() -> None:
    call = Call()
    call.tie()
    await call.play(0.4, speaking=False)
    await call.play(0.6, shown=False)
    await call.play(1.0)
    record = await call.over()
    assert record["time_to_first_frame_ms"] == pytest.approx(1100, abs=41)


async def test_of_a_reply_whose_beginning_is_forgotten_nothing_first_is_told() -> None:
    call = Call()
    call.tie()
    await call.play(0.4, speaking=False)
    await call.play(45.0)
    record = await call.over()
    firsts = [name for name in record if name.startswith("time_to_first")]
    assert [record[name] for name in firsts] == [None, None, None]


def hung_up(call: Call) -> Mapping[str, Any]:
    call.trace.ended_at = call.clock.now()
    call.timeline.turn_over(call.trace)
    call.timeline.close()
    (record,) = call.measured
    return record


async def test_a_call_that_ends_between_two_reports_is_no_freeze() -> None:
    call = Call()
    call.tie()
    await call.play(2.0)
    call.report()
    call.reporting = False
    await call.play(0.2)
    assert hung_up(call)["render_freezes"] == []


async def test_a_freeze_that_is_open_at_hang_up_is_whoevers_pictures_were_kept_back() -> None:
    for drawn, cause in ((False, "render"), (True, "network")):
        call = Call()
        call.tie()
        await call.play(2.0)
        frozen = call.clock.now() - 0.04 + call.picture_delay
        await call.play(0.8, drawn=drawn, shown=False)
        (freeze,) = hung_up(call)["render_freezes"]
        assert freeze["duration_ms"] == pytest.approx(1000 * (call.clock.now() - frozen), abs=1)
        assert (freeze["cause"], freeze["w3c"]) == (cause, True)


async def test_a_page_that_is_still_in_the_background_at_hang_up_is_not_painted() -> None:
    call = Call()
    call.tie()
    await call.play(2.0)
    call.hidden = True
    await call.play(0.8, shown=False)
    (freeze,) = hung_up(call)["render_freezes"]
    assert freeze["cause"] == "paint"


async def test_the_clients_own_word_on_when_its_user_stopped_goes_before_the_estimate() -> None:
    call = Call()
    call.tie()
    call.trace.speech_end = 1000.06
    call.timeline.speech_ended(1000.0 - OFFSET)
    await call.play(0.4, speaking=False)
    await call.play(1.0)
    record = await call.over()
    assert record["time_to_first_audio_ms"] == pytest.approx(500, abs=1)
    assert record["stages"]["shares_ms"]["uplink"] == pytest.approx(60, abs=1)


async def test_the_clients_energy_gate_is_a_witness_of_the_first_audio() -> None:
    call = Call()
    call.timeline.observed(ClientObservation(audible=(1000.45 - OFFSET,)))  # before the clocks are tied
    call.tie()
    await call.play(0.4, speaking=False)
    await call.play(0.6)
    call.timeline.observed(ClientObservation(audible=(1000.51 - OFFSET, 1000.8 - OFFSET)))
    await call.play(0.4)
    record = await call.over()
    assert record["first_audio_witness_ms"] == pytest.approx(510, abs=1)
