import asyncio

import numpy as np
import pytest

from pipeline.clock import VirtualClock
from pipeline.events import WIRE_RATE, SpeechChunk, Word
from pipeline.webrtc.playout import Playout
from pipeline.webrtc.reply import MAX_AHEAD, Reply
from tests.pipeline.webrtc.playing import Notes, frames


def chunk(text: str, seconds: float, level: int = 1000) -> SpeechChunk:
    words = text.split()
    each = seconds / len(words)
    return SpeechChunk(
        text,
        np.full(round(seconds * WIRE_RATE), level, np.int16),
        WIRE_RATE,
        (),
        tuple(Word(word, i * each, (i + 1) * each) for i, word in enumerate(words)),
    )


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def playout(notes: Notes) -> Playout:
    return Playout(VirtualClock(), notes)


async def test_a_reply_is_played_to_its_last_sample(playout: Playout, notes: Notes) -> None:
    reply = Reply()
    await reply.add(chunk("one two", 0.1))
    assert await reply.add(chunk("three", 0.05, level=2000)) == pytest.approx(0.1)
    reply.complete()
    playout.play(reply)
    pcm = frames(playout, 9)
    assert (pcm[:4800] == 1000).all()
    assert (pcm[4800:7200] == 2000).all()
    assert (pcm[7200:] == 0).all()
    assert reply.done.is_set()
    assert notes.started == [reply]
    assert [word.text for word in notes.words] == ["one", "two", "three"]
    assert reply.heard_text() == "one two three"


async def test_silence_without_a_reply(playout: Playout) -> None:
    assert (frames(playout, 3) == 0).all()
    assert playout.position(0.0) is None


async def test_a_gap_between_clauses_moves_no_position(playout: Playout) -> None:
    reply = Reply()
    await reply.add(chunk("one", 0.04))
    playout.play(reply)
    frames(playout, 4)
    assert reply.position == pytest.approx(0.04)
    assert playout.position(0.0) is None, "nothing goes out"
    await reply.add(chunk("two", 0.04))
    assert (frames(playout, 2) == 1000).all()


async def test_stop_forgets_the_rest(playout: Playout) -> None:
    reply = Reply()
    await reply.add(chunk("one two three four", 0.4))
    playout.play(reply)
    frames(playout, 6)
    playout.stop()
    frames(playout, 1)
    assert (frames(playout, 5) == 0).all()
    assert reply.done.is_set()
    assert reply.heard_text() == "one"


async def test_an_apology_is_heard_but_is_not_the_reply(playout: Playout) -> None:
    reply = Reply()
    await reply.add(chunk("well then", 0.04))
    await reply.add(chunk("sorry", 0.04), own=False)
    reply.complete()
    playout.play(reply)
    frames(playout, 6)
    assert reply.heard_text() == "well then"


async def test_a_word_is_heard_when_half_of_it_was() -> None:
    reply = Reply()
    await reply.add(chunk("one two", 0.2))
    await reply.add(chunk("sorry", 0.1), own=False)
    await reply.add(chunk("three", 0.1))
    assert [reply.heard_text(at) for at in (0.0, 0.04, 0.05, 0.149, 0.15, 0.29, 0.35)] == [
        "", "", "one", "one", "one two", "one two", "one two three",
    ]  # fmt: skip


async def test_the_next_reply_takes_the_place_of_the_last(playout: Playout) -> None:
    first, second = Reply(), Reply()
    await first.add(chunk("one", 1.0))
    await second.add(chunk("two", 0.1, level=2000))
    playout.play(first)
    frames(playout, 2)
    playout.play(second)
    frames(playout, 1)
    assert (playout.next_frame() == 2000).all()
    assert first.done.is_set()


async def test_a_reply_far_ahead_waits(playout: Playout) -> None:
    reply = Reply()
    await reply.add(chunk("long", MAX_AHEAD + 1))
    adding = asyncio.create_task(reply.add(chunk("more", 1.0)))
    playout.play(reply)
    frames(playout, 10)
    await asyncio.sleep(0)
    assert not adding.done()
    frames(playout, 50)
    await adding
    assert reply.duration == pytest.approx(MAX_AHEAD + 2)


async def test_a_stopped_reply_takes_what_still_comes_and_drops_it(playout: Playout) -> None:
    reply = Reply()
    reply.stop()
    assert await reply.add(chunk("late", 0.1)) is None
    assert reply.duration == 0


async def test_a_reply_stopped_while_a_clause_waits_for_room_drops_the_clause() -> None:
    reply = Reply()
    await reply.add(chunk("long", MAX_AHEAD + 1))
    adding = asyncio.create_task(reply.add(chunk("more", 1.0)))
    await asyncio.sleep(0)
    reply.stop()
    assert await adding is None


async def test_a_complete_reply_takes_no_more() -> None:
    reply = Reply()
    reply.complete()
    with pytest.raises(ValueError, match="complete"):
        await reply.add(chunk("late", 0.1))


async def test_position_runs_on_between_frames() -> None:
    clock = VirtualClock()
    playout = Playout(clock, Notes())
    reply = Reply()
    await reply.add(chunk("one", 1.0))
    playout.play(reply)
    playout.next_frame()
    assert playout.position(clock.now()) == pytest.approx(0.0)
    assert playout.position(clock.now() + 0.01) == pytest.approx(0.01)
    assert playout.position(clock.now() + 0.5) == pytest.approx(0.02), "never past what went out"


async def test_speech_at_another_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="48000 Hz, got 22050"):
        await Reply().add(SpeechChunk("x", np.zeros(10, np.int16), 22_050, (), ()))
