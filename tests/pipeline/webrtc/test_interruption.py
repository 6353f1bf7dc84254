"""What ducking, holding, resuming and stopping do to what goes out."""

import asyncio
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from pipeline.clock import VirtualClock
from pipeline.events import WIRE_RATE, Pcm
from pipeline.webrtc.playout import FRAME, FRAME_SECONDS, Playout
from pipeline.webrtc.reply import MAX_AHEAD, Reply
from tests.pipeline.webrtc.playing import RAMP, Notes, counting, frames, sine, speak, speech


async def three_words() -> Reply:
    """0.5 s: words of 0.1 s, 0.2 s and 0.1 s with pauses of 0.05 s before the last two."""
    return await speak(speech(counting(24_000), ("I", 0.0, 0.1), ("am", 0.15, 0.35), ("well", 0.4, 0.5)))


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def playout(notes: Notes) -> Playout:
    return Playout(VirtualClock(), notes)


async def test_the_next_frame_is_ducked_and_unducked(playout: Playout) -> None:
    pcm = np.full(WIRE_RATE, 10_000, np.int16)
    playout.play(await speak(speech(pcm)))
    frames(playout, 2)
    playout.duck()
    ducking = playout.next_frame()
    assert (np.diff(ducking[:RAMP].astype(int)) < 0).all()
    assert (ducking[RAMP:] == 1000).all(), "20 dB down within 10 ms"
    assert (frames(playout, 5) == 1000).all()
    playout.unduck()
    assert (playout.next_frame()[RAMP:] == 10_000).all()
    assert (playout.next_frame() == 10_000).all()


async def test_the_next_frame_is_held_and_nothing_goes_on(playout: Playout) -> None:
    reply = await three_words()
    playout.play(reply)
    frames(playout, 5)
    playout.hold()
    held = playout.next_frame()
    assert held[0] == 5 * FRAME + 1
    assert held[RAMP - 1 :].tolist() == [0] * (FRAME - RAMP + 1)
    assert (frames(playout, 50) == 0).all()
    assert reply.position == pytest.approx(5 * FRAME_SECONDS)
    assert playout.position(0.0) is None
    assert playout.span is None


async def test_the_interrupted_word_is_said_again(playout: Playout, notes: Notes) -> None:
    reply = await three_words()
    playout.play(reply)
    frames(playout, 10)  # 0.05 s into "am"
    assert playout.span == (pytest.approx(0.18), pytest.approx(0.2))
    playout.hold()
    frames(playout, 7)
    playout.resume()
    first = playout.next_frame()
    assert first[0] == 0, "faded in"
    assert first[RAMP:].tolist() == counting(FRAME - RAMP, round(0.15 * WIRE_RATE) + RAMP).tolist()
    assert playout.position(0.0) == pytest.approx(0.15), "face and captions go back with it"
    frames(playout, 30)
    assert [word.text for word in notes.words] == ["I", "am", "well"], "announced once"
    assert notes.started == [reply]
    assert reply.done.is_set()


async def test_between_words_it_goes_on_where_it_was(playout: Playout) -> None:
    playout.play(await three_words())
    frames(playout, 6)  # 0.12 s, between "I" and "am"
    playout.hold()
    frames(playout, 7)
    playout.resume()
    assert playout.next_frame()[-1] == 7 * FRAME, "no sample is lost"


async def test_the_first_word_said_again_starts_no_second_reply(playout: Playout, notes: Notes) -> None:
    reply = await three_words()
    playout.play(reply)
    frames(playout, 2)
    playout.hold()
    frames(playout, 2)
    playout.resume()
    playout.next_frame()
    assert playout.position(0.0) == 0.0
    assert notes.started == [reply]


async def test_ducked_before_the_first_sample(playout: Playout) -> None:
    playout.play(reply := Reply())
    playout.duck()
    frames(playout, 1)
    await reply.add(speech(np.full(WIRE_RATE, 1000, np.int16)))
    assert (frames(playout, 3) == 100).all(), "no sample at full level"


async def test_held_before_the_first_sample(playout: Playout, notes: Notes) -> None:
    playout.play(reply := Reply())
    playout.hold()
    await reply.add(speech(counting(WIRE_RATE // 2)))
    assert (frames(playout, 3) == 0).all()
    assert notes.started == []
    playout.resume()
    assert playout.next_frame()[-1] == FRAME
    assert notes.started == [reply]


async def test_stopped_before_the_first_sample(playout: Playout, notes: Notes) -> None:
    reply = await three_words()
    playout.play(reply)
    playout.stop()
    assert (frames(playout, 3) == 0).all()
    assert notes.started == []
    assert reply.done.is_set()


@pytest.mark.parametrize("left", [0.2, 0.1, 0.02, 0.005])
async def test_held_in_its_last_moments_it_is_not_done(playout: Playout, left: float) -> None:
    duration = 20 * FRAME_SECONDS + left
    reply = await speak(speech(sine(duration), ("well", 0.1, duration)))
    playout.play(reply)
    frames(playout, 20)
    playout.hold()
    frames(playout, 20)
    assert not reply.done.is_set(), "the fade is no playing"
    playout.resume()
    frames(playout, round((left + 0.3) / FRAME_SECONDS) - 1)
    assert not reply.done.is_set(), "the word is said again, whole"
    frames(playout, 2)
    assert reply.done.is_set()


async def test_stopped_it_fades_within_the_next_frame(playout: Playout) -> None:
    reply = await three_words()
    playout.play(reply)
    frames(playout, 10)
    playout.stop()
    assert reply.done.is_set()
    stopped = playout.next_frame()
    assert stopped[0] == 10 * FRAME + 1
    assert stopped[RAMP - 1 :].tolist() == [0] * (FRAME - RAMP + 1)
    assert (frames(playout, 3) == 0).all()


async def test_stopped_while_held_it_is_done(playout: Playout) -> None:
    reply = await three_words()
    playout.play(reply)
    frames(playout, 24)
    playout.hold()
    frames(playout, 3)
    playout.stop()
    assert reply.done.is_set()
    assert (frames(playout, 3) == 0).all(), "it had fallen silent already"


async def test_after_the_last_sample_there_is_nothing_to_hold(playout: Playout) -> None:
    reply = await three_words()
    playout.play(reply)
    frames(playout, 25)
    assert reply.done.is_set()
    playout.duck()
    playout.hold()
    assert (frames(playout, 3) == 0).all()
    playout.resume()
    assert (frames(playout, 3) == 0).all()
    assert reply.position == pytest.approx(0.5)


async def test_completed_while_held(playout: Playout) -> None:
    playout.play(reply := Reply())
    await reply.add(speech(counting(2 * FRAME), ("well", 0.0, 0.04)))
    frames(playout, 1)
    playout.hold()
    frames(playout, 2)
    await reply.add(speech(counting(FRAME, 2 * FRAME)))
    reply.complete()
    assert not reply.done.is_set()
    playout.resume()
    assert frames(playout, 3)[RAMP:].tolist() == counting(3 * FRAME)[RAMP:].tolist()
    assert reply.done.is_set()


@pytest.mark.parametrize("seconds", [0.04, 0.05])
async def test_a_clause_that_comes_after_a_gap_is_not_heard_while_held(
    playout: Playout, seconds: float
) -> None:
    playout.play(reply := Reply())
    await reply.add(speech(sine(seconds), ("well", 0.0, seconds)))
    frames(playout, 3)  # it ran dry
    await reply.add(speech(sine(0.04)))
    playout.hold()
    assert (frames(playout, 3) == 0).all()


async def test_ten_interruptions_in_a_row(playout: Playout, notes: Notes) -> None:
    reply = await three_words()
    playout.play(reply)
    frames(playout, 10)
    for _ in range(10):
        playout.duck()
        frames(playout, 1)
        playout.hold()
        frames(playout, 2)
        playout.resume()
        assert playout.next_frame()[-1] == round(0.15 * WIRE_RATE) + FRAME
    frames(playout, 20)
    assert reply.done.is_set()
    assert [word.text for word in notes.words] == ["I", "am", "well"]


async def test_held_and_resumed_within_a_frame_nothing_happened(playout: Playout) -> None:
    playout.play(await three_words())
    frames(playout, 10)
    playout.hold()
    playout.resume()
    assert playout.next_frame().tolist() == counting(FRAME, 10 * FRAME).tolist()


@pytest.mark.parametrize("interrupt", [Playout.duck, Playout.hold])
async def test_the_next_reply_is_neither_ducked_nor_held(
    playout: Playout, interrupt: Callable[[Playout], None]
) -> None:
    interrupt(playout)
    playout.play(await three_words())
    assert playout.next_frame()[-1] == FRAME
    interrupt(playout)
    frames(playout, 2)
    playout.play(await three_words())
    assert frames(playout, 3)[-1] in (2 * FRAME, 3 * FRAME), "a frame later where the last had to fade"


async def test_every_frame_is_shown_to_who_listens_for_its_echo() -> None:
    shown: list[Pcm] = []
    playout = Playout(VirtualClock(), Notes(), shown.append)
    playout.next_frame()
    playout.play(await three_words())
    playout.next_frame()
    playout.duck()
    sent = playout.next_frame()
    assert len(shown) == 3
    assert (shown[0] == 0).all()
    assert shown[2].tolist() == sent.tolist()


async def test_a_held_reply_waits_for_room_as_any_other(playout: Playout) -> None:
    playout.play(reply := Reply())
    await reply.add(speech(np.zeros(WIRE_RATE, np.int16), ("long", 0.0, 1.0)))
    frames(playout, 49)
    await reply.add(speech(np.zeros(round((MAX_AHEAD - 0.5) * WIRE_RATE), np.int16)))
    playout.hold()
    frames(playout, 1)
    playout.resume()  # the queue is 0.98 s longer again
    adding = asyncio.create_task(reply.add(speech(sine(0.1))))
    await asyncio.sleep(0)
    assert not adding.done()
    frames(playout, 49)
    await adding


async def test_what_was_played_is_not_kept(playout: Playout) -> None:
    pcm = sine(0.04)
    clause = weakref.ref(pcm)
    playout.play(reply := Reply())
    await reply.add(speech(pcm, ("well", 0.0, 0.04)))
    await reply.add(speech(sine(0.1)))
    del pcm
    frames(playout, 1)
    assert clause() is not None
    frames(playout, 1)
    assert clause() is None


async def test_a_word_that_reaches_past_its_clause_by_rounding_is_out_with_it(playout: Playout) -> None:
    playout.play(reply := Reply())
    await reply.add(speech(counting(FRAME), ("well", 0.0, FRAME_SECONDS + 1e-4)))
    frames(playout, 1)
    playout.hold()
    frames(playout, 2)
    await reply.add(speech(counting(FRAME, FRAME)))
    playout.resume()
    assert playout.next_frame()[-1] == 2 * FRAME
