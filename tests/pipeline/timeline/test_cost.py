"""What it costs to observe a call: the timeline alone, fed with what a call of that length feeds it.

What its messages cost the wire is measured by `python -m services.lab.bench observing`.
"""

import gc
import json
import logging
import time
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.events import ClockStamps, TurnInput, TurnTrace
from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.session_timeline import SessionTimeline
from pipeline.webrtc import rtvi
from tests.pipeline.observed_call import BlockableClock

_log = logging.getLogger(__name__)

FRAME_S = 0.02
PICTURE_FRAMES = 2
PICTURE_PACKETS = 5
"""Of 1 Mbit/s, 25 pictures a second, and 1,200 bytes a packet."""
REPORT_FRAMES = 10
CLOCK_FRAMES = 100
TURN_FRAMES, REPLY_FRAMES = 600, 300
REPLY_S = REPLY_FRAMES * FRAME_S

ORIGIN = 4_294_000_000


class Call:
    """50 frames of sound and 25 pictures a second; a turn every 12 s, half of which is its reply."""

    def __init__(self) -> None:
        self.clock = BlockableClock(1000.0)
        self.turns = 0
        lag = LoopLag(self.clock)
        self.timeline = SessionTimeline(self.clock, {}, lag, self._measured)
        self.timeline.connected(lambda kind: ORIGIN)
        self._frame = 0
        self._sound: list[tuple[int, float]] = []
        self._pictures: list[tuple[int, float]] = []

    def last(self, seconds: float) -> None:
        for _ in range(round(seconds / FRAME_S)):
            self._next()
            self.clock.block(FRAME_S)

    def _next(self) -> None:
        now, frame = self.clock.now(), self._frame
        number, played = divmod(frame, TURN_FRAMES)
        turn, position = f"t{number}", played * FRAME_S if played < REPLY_FRAMES else None
        span = None if position is None else (position, position + FRAME_S)
        self.timeline.voice_made(frame * 960, turn, span)
        self._sent("audio", frame * 960, self._sound, 1)
        if frame % PICTURE_FRAMES == 0:
            self.timeline.picture_made(frame * 1800, now, turn, position, moving=span is not None)
            self._sent("video", frame * 1800, self._pictures, PICTURE_PACKETS)
        if frame % CLOCK_FRAMES == 0:
            self.timeline.stamped(ClockStamps(now - 0.001, now, now, now + 0.001))
        if frame % REPORT_FRAMES == 0:
            self._report()
        if played == REPLY_FRAMES:
            self._over(turn, now)
        self._frame += 1

    def _sent(self, kind: str, pts: int, presented: list[tuple[int, float]], packets: int) -> None:
        stamp = (pts + ORIGIN) % 2**32
        for _ in range(packets):
            self.timeline.packet_sent(kind, stamp)
        presented.append((stamp, self.clock.now() + 0.09))

    def _report(self) -> None:
        observed = {"sound": self._sound, "pictures": self._pictures, "concealed": [], "hidden": False}
        text = rtvi.message("client-message", {"t": "visavis.observed", "d": observed})
        message = rtvi.parse(text)
        assert isinstance(message, rtvi.Observed)
        self.timeline.observed(message.observation)
        self._sound.clear()
        self._pictures.clear()

    def _over(self, turn: str, now: float) -> None:
        trace = TurnTrace(turn, "s1", TurnInput.VOICE, now - REPLY_S - 2, speech_end=now - REPLY_S - 0.5)
        trace.first_sound_at = trace.first_audio_at = now - REPLY_S
        trace.first_audible, trace.committed_revision, trace.ended_at = 0.0, 1, now
        trace.token_times = [now - REPLY_S + 0.02 * k for k in range(60)]
        trace.clause_times = [(float(k), now - REPLY_S - 0.2, now - REPLY_S - 0.1) for k in range(4)]
        json.dumps(self.timeline.turn_over(trace))

    def _measured(self, record: Mapping[str, Any]) -> None:
        self.turns += 1
        assert (record["speech_gaps"], record["render_freezes"]) == ([], [])
        json.dumps(record)


def test_a_second_of_a_call_takes_little() -> None:
    call, seconds = Call(), 240
    call.last(60)  # ledgers fill up
    began = time.process_time()
    call.last(seconds)
    share = (time.process_time() - began) / seconds
    # At most: the reports are written here as well.
    _log.info("timeline: %.2f %% of a core for each session, at most", share * 100)
    assert call.turns == (60 + seconds) * 50 // TURN_FRAMES


@pytest.mark.slow
def test_an_hour_takes_no_more_memory_than_ten_minutes() -> None:
    tracemalloc.start()
    try:
        call = Call()
        held = []
        for minutes in (10, 50):
            call.last(minutes * 60)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    _log.info(
        "timeline: %.0f KB after 10 min, %.0f KB after an hour, peak %.0f KB",
        *(size / 1000 for size in (*held, peak)),
    )
    assert call.turns == 300
    assert held[1] - held[0] < 100_000
    assert peak < 10_000_000
