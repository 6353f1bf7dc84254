"""Whatever is done to a reply: nothing of it is lost, nothing out of order, and nothing clicks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clock import VirtualClock
from pipeline.events import WIRE_RATE, SpeechChunk
from pipeline.webrtc.playout import FRAME, FRAME_SECONDS, Playout
from pipeline.webrtc.reply import Reply
from tests.pipeline.webrtc.playing import RAMP, SINE_HZ, SINE_PEAK, Notes, counting, sine, speech

STEP = SINE_PEAK * (2 * np.pi * SINE_HZ / WIRE_RATE + 1 / (RAMP - 1)) + 2
"""The largest step between samples of the sine while a 10 ms ramp goes over it, and rounding."""

CLAUSE_FRAMES = 4
CLAUSES = 6
_ANY = ["duck", "unduck", "hold", "resume", "resume", "add", *["frame"] * 8]
OPERATIONS = st.lists(st.sampled_from(_ANY), max_size=100)
LAST_OPERATIONS = st.lists(st.sampled_from([*_ANY, "complete", "stop"]), max_size=40)


def clause(index: int) -> SpeechChunk:
    """Two words with pauses after them; edges inside frames."""
    count = CLAUSE_FRAMES * FRAME
    return speech(counting(count, index * count), (f"{index}a", 0.0, 0.033), (f"{index}b", 0.041, 0.073))


class Interrupted:
    """A playout, and what must become of the reply in it."""

    def __init__(self) -> None:
        self.notes = Notes()
        self.playout = Playout(VirtualClock(), self.notes)
        self.reply = Reply()
        self.playout.play(self.reply)
        self.added = 0
        self.completed = self.stopped = False
        self.held = self.silenced = False
        self.next = self.furthest = 0.0

    async def do(self, operation: str) -> None:
        match operation:
            case "frame":
                self.frame()
            case "add" if not self.completed and self.added < CLAUSES:
                await self.reply.add(clause(self.added))
                self.added += 1
            case "complete":
                self.completed = True
                self.reply.complete()
            case "stop":
                self.stopped = self.completed = True
                self.playout.stop()
            case "duck":
                self.playout.duck()
            case "unduck":
                self.playout.unduck()
            case "hold":
                self.held = True
                self.playout.hold()
            case "resume":
                if self.silenced:
                    cut = [word.start for word in self.reply.words if word.start < self.next < word.end]
                    self.next = cut[0] if cut else self.next
                self.held = self.silenced = False
                self.playout.resume()
        self.check()

    def frame(self) -> None:
        pcm = self.playout.next_frame()
        assert len(pcm) == FRAME
        self.silenced = self.held
        if self.playout.span is None:
            assert self.held or self.stopped or self.next == pytest.approx(self.duration)
            return
        assert not self.held
        assert not self.stopped
        start, end = self.playout.span
        assert start == pytest.approx(self.next)
        begin, count = round(start * WIRE_RATE), round((end - start) * WIRE_RATE)
        whole = counting(count, begin)
        assert (pcm[:count] <= whole).all(), "the reply's samples, no louder than they are"
        assert (pcm[RAMP:count] >= whole[RAMP:] // 10 - 1).all(), "and at least ducked"
        self.next, self.furthest = end, max(self.furthest, end)

    def check(self) -> None:
        assert self.next <= self.furthest <= self.duration + 1e-9
        assert self.notes.words == [word for word in self.reply.words if word.start < self.furthest]
        assert len(self.notes.started) == (self.furthest > 0)
        over = self.completed and self.next == pytest.approx(self.duration)
        assert self.reply.done.is_set() == (self.stopped or over)

    @property
    def duration(self) -> float:
        return self.added * CLAUSE_FRAMES * FRAME_SECONDS


@given(OPERATIONS, LAST_OPERATIONS)
async def test_whatever_happens_to_a_reply(first: list[str], last: list[str]) -> None:
    call = Interrupted()
    for operation in [*first, *last, "resume", "complete", *["frame"] * (CLAUSES * CLAUSE_FRAMES + 2)]:
        await call.do(operation)
    assert call.reply.done.is_set()
    if not call.stopped:
        assert call.furthest == pytest.approx(call.duration), "every sample went out"
        assert len(call.notes.words) == 2 * call.added


@given(st.lists(st.sampled_from([*_ANY, "play", "stop"]), max_size=80))
async def test_no_change_of_level_clicks(operations: list[str]) -> None:
    playout = Playout(VirtualClock(), Notes())
    heard = [np.zeros(1, np.int16)]
    reply = Reply()
    playout.play(reply)
    for operation in ["add", *operations, "frame", "frame"]:
        match operation:
            case "frame":
                heard.append(playout.next_frame())
            case "add":
                # Words begin anywhere in the sine's period.
                await reply.add(speech(sine(0.1), ("a", 0.0053, 0.0471), ("b", 0.0512, 0.0987)))
            case "play":
                playout.play(reply := Reply())
                await reply.add(speech(sine(0.1), ("c", 0.0111, 0.0891)))
            case _:
                getattr(playout, operation)()
    assert np.abs(np.diff(np.concatenate(heard).astype(int))).max() <= STEP
