"""Faults put into a real call, on a real wire, are found with their size, place and cause.

The sizes that are expected are those that were put in; and what the client's own ear says of them, which is
taken from the waveform and from arrivals, not from the reports that the server's timeline is made of.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from services.lab.arrivals import PLAYOUT
from services.lab.network.relay import Direction
from tests.pipeline.test_dialogue import WORD_SECONDS
from tests.scripted_call import ScriptedCall, scripted_call
from tests.scripted_server import SENTENCE_SECONDS
from tests.steadiness import on_a_steady_machine

pytestmark = [pytest.mark.loopback, pytest.mark.proof]

TOLERANCE_MS = 20
"""A packet of sound."""

EAR_MS = 30
"""That, and 10 ms by which a codec rings on into a silence."""

PICTURE_MS = 40

PLAYOUT_MS = PLAYOUT * 1000


def only(found: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    (one,) = found
    return one


def near(expected: float) -> Any:
    return pytest.approx(expected, abs=TOLERANCE_MS)


def assert_audible(call: ScriptedCall, gap: Mapping[str, Any]) -> None:
    """The waveform shows this gap, and no other."""
    (silence,) = call.silences()
    assert gap["at_ms"] == pytest.approx(silence.at, abs=EAR_MS)
    assert gap["duration_ms"] == pytest.approx(silence.duration, abs=EAR_MS)


def worst_freeze(call: ScriptedCall, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The worst of those that were found, all of which this client saw as well: a busy machine has more."""
    found, seen = record["render_freezes"], call.stills()
    assert all(any(freeze["duration_ms"] == near(still) for still in seen) for freeze in found)
    assert len(found) <= len(seen)
    worst = max(found, key=lambda freeze: freeze["duration_ms"])
    assert worst["duration_ms"] == near(max(seen))
    return worst


async def gap_in(call: ScriptedCall) -> Mapping[str, Any]:
    """The one gap of the turn under way."""
    gap = only((await call.record())["speech_gaps"])
    assert_audible(call, gap)
    return gap


@on_a_steady_machine
async def test_where_nothing_goes_wrong_nothing_is_found() -> None:
    async with scripted_call() as call:
        for _ in range(3):
            record = await call.turn()
            assert record["speech_gaps"] == []
            assert len(record["render_freezes"]) <= len(call.stills()), "a busy machine has some"
            assert record["stages_violated"] is None, "nobody knows when a typed question was spoken"
            assert record["time_to_first_audio_ms"] == near(call.first_audio + PLAYOUT_MS)
            assert record["clock_bound_ms"] < TOLERANCE_MS
            assert call.silences() == []


@on_a_steady_machine
async def test_packets_that_are_lost() -> None:
    async with scripted_call() as call:
        call.say()
        await call.until_heard("asking")
        call.relay.block(0.2, Direction.DOWN)
        record = await call.record()
    gap, freeze = only(record["speech_gaps"]), worst_freeze(call, record)
    assert_audible(call, gap)
    assert gap["duration_ms"] == near(200)
    assert gap["at_ms"] == pytest.approx(1000 * (SENTENCE_SECONDS + 3 * WORD_SECONDS), abs=60)
    assert 200 <= freeze["duration_ms"] <= 200 + 2 * PICTURE_MS
    assert (gap["cause"], freeze["cause"]) == ("network", "network")


@on_a_steady_machine
async def test_packets_that_are_late() -> None:
    async with scripted_call() as call:
        call.say()
        await call.until_heard("asking")
        call.relay.delay(0.25, 0.1, Direction.DOWN)
        record = await call.record()
        wait = call.longest_wait()
    gap, freeze = only(record["speech_gaps"]), worst_freeze(call, record)
    assert gap["duration_ms"] == near(250 - PLAYOUT_MS), "the rest is what a buffer is for"
    assert gap["at_ms"] == near(wait.at)
    assert freeze["duration_ms"] == near(250 + PICTURE_MS)
    assert (gap["cause"], freeze["cause"]) == ("network", "network")


@pytest.mark.parametrize("seconds", [0.1, 0.35, 0.6])
@on_a_steady_machine
async def test_a_synthesizer_that_stalls_in_mid_utterance(seconds: float) -> None:
    async with scripted_call() as call:
        call.server.script.voice_stalls = seconds
        call.say()
        gap = await gap_in(call)
    assert gap["duration_ms"] == near(1000 * seconds)
    assert gap["at_ms"] == near(1000 * (SENTENCE_SECONDS + 2 * WORD_SECONDS))
    assert gap["cause"] == "tts"


@pytest.mark.parametrize("split", [1, 3], ids=["between clauses", "between tokens"])
@on_a_steady_machine
async def test_a_model_that_stalls(split: int) -> None:
    async with scripted_call() as call:
        call.server.script.model_stalls, call.server.script.split = 0.5, split
        call.say()
        gap = await gap_in(call)
    assert gap["duration_ms"] == near(500)
    assert gap["at_ms"] == near(1000 * SENTENCE_SECONDS)
    assert gap["cause"] == "llm"


@on_a_steady_machine
async def test_a_loop_that_stands_still() -> None:
    async with scripted_call() as call:
        call.say()
        await call.until_heard("asking")
        call.server.block_loop(0.2)
        record = await call.record()
    gap, freeze = only(record["speech_gaps"]), worst_freeze(call, record)
    assert_audible(call, gap)
    assert gap["duration_ms"] == near(200)
    assert 200 <= freeze["duration_ms"] <= 200 + 2 * PICTURE_MS
    assert (gap["cause"], freeze["cause"]) == ("loop", "loop")


@on_a_steady_machine
async def test_encoders_that_take_long() -> None:
    async with scripted_call() as call:
        call.say()
        await call.until_heard("asking")
        call.server.block_encoders(0.2)
        record = await call.record()
    freeze = worst_freeze(call, record)
    assert 200 <= freeze["duration_ms"] <= 200 + 2 * PICTURE_MS
    assert freeze["cause"] == "encode"
    assert record["speech_gaps"] == [], "sound waits for no encoder of pictures"


@pytest.mark.parametrize("seconds", [0.3, 2.0])
@on_a_steady_machine
async def test_a_renderer_that_pauses(seconds: float) -> None:
    async with scripted_call() as call:
        call.say()
        await call.until_heard("very")
        call.server.script.drawing_takes = seconds
        record = await call.record()
        drawing = call.longest_drawing()
    freeze = worst_freeze(call, record)
    assert freeze["duration_ms"] == near(drawing)
    assert freeze["duration_ms"] == near(1000 * seconds + PICTURE_MS), "the next was due a picture later"
    assert (freeze["cause"], freeze["w3c"]) == ("render", True)
    assert record["speech_gaps"] == []


@pytest.mark.parametrize("cause", ["network", "render"])
@on_a_steady_machine
async def test_a_freeze_that_is_open_at_hang_up(cause: str) -> None:
    async with scripted_call() as call:
        call.say()
        await call.until_heard("asking")
        if cause == "network":
            call.relay.block(10, Direction.DOWN)
        else:
            call.server.script.drawing_takes = 1.0
        await call.clock.sleep_until(call.clock.now() + 0.7)  # for so long it is looked at
        frozen = call.clock.now() - call.user.pictures.seen[-1][0] - PLAYOUT
    record = call.server.records[-1]
    assert record["failed"] == "disconnected"
    freeze = only(record["render_freezes"])
    assert freeze["duration_ms"] == near(1000 * frozen)
    assert (freeze["cause"], freeze["w3c"]) == (cause, True)


@on_a_steady_machine
async def test_a_call_that_ends_in_mid_reply_is_no_freeze() -> None:
    async with scripted_call() as call:
        call.say()
        await call.until_heard("asking")
    record = call.server.records[-1]
    assert record["failed"] == "disconnected"
    assert record["render_freezes"] == []
