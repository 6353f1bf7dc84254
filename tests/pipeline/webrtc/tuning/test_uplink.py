import asyncio
from contextlib import aclosing

import numpy as np
import pytest
from aiortc.rtp import RtpPacket

from pipeline.clock import MonotonicClock, VirtualClock
from pipeline.events import WIRE_RATE, Pcm
from pipeline.webrtc.tuning.uplink import MAX_WAITING, Uplink
from tests.pipeline.webrtc.tuning.sounding import FRAME, opus_packets

PACKETS = opus_packets(50)
FOREVER = 3600.0


def packet(index: int) -> RtpPacket:
    made = RtpPacket(payload_type=96, sequence_number=index & 0xFFFF, timestamp=index * FRAME & 0xFFFFFFFF)
    made.ssrc, made.payload = 1, PACKETS[index % len(PACKETS)]
    return made


async def next_sound(uplink: Uplink, gap: float = FOREVER) -> tuple[Pcm | None, float]:
    async with aclosing(uplink.listen(gap)) as sound, asyncio.timeout(10):
        async for pcm, at in sound:
            return pcm, at
    raise EOFError


async def test_sound_comes_with_the_time_of_its_last_packet() -> None:
    clock = VirtualClock(7.0)
    uplink = Uplink(clock)
    uplink.add(packet(0))
    await clock.advance(1.0)
    pcm, at = await next_sound(uplink)
    assert pcm is not None
    assert len(pcm) == FRAME
    assert at == 7.0


async def test_a_waiting_listener_is_woken() -> None:
    uplink = Uplink(VirtualClock())
    listening = asyncio.create_task(next_sound(uplink))
    await asyncio.sleep(0)
    assert uplink.add(packet(0)) == (False, None)
    pcm, _ = await listening
    assert pcm is not None


async def test_the_last_packets_of_a_talk_are_heard_though_one_before_them_is_lost() -> None:
    uplink = Uplink(MonotonicClock())
    uplink.add(packet(0))
    await next_sound(uplink)
    uplink.add(packet(2))
    pcm, _ = await next_sound(uplink)
    assert pcm is not None
    assert len(pcm) == 2 * FRAME


async def test_a_silent_line_says_so_once_and_again_after_a_sound() -> None:
    uplink = Uplink(MonotonicClock())
    silent: list[bool] = []
    async with aclosing(uplink.listen(0.001)) as sound, asyncio.timeout(10):
        async for pcm, _ in sound:
            silent.append(pcm is None)
            if len(silent) == 1:
                uplink.add(packet(0))
            if len(silent) == 3:
                break
    assert silent == [True, False, True]


async def test_of_what_nobody_listens_to_the_oldest_is_dropped_and_counted() -> None:
    clock = VirtualClock()
    uplink = Uplink(clock)
    for index in range(1000):
        uplink.add(packet(index))
        await clock.advance(0.02)
    assert len(uplink._waiting) <= MAX_WAITING * 50
    kept = 0
    newest = 0.0
    async with aclosing(uplink.listen(FOREVER)) as sound:
        while uplink._waiting:
            pcm, newest = await anext(sound)
            assert pcm is not None
            kept += len(pcm)
    assert kept == MAX_WAITING * WIRE_RATE
    assert kept + uplink.dropped == 1000 * FRAME
    assert newest == pytest.approx(999 * 0.02)


async def test_whatever_arrives_while_a_piece_is_dealt_with_is_not_missed() -> None:
    uplink = Uplink(VirtualClock())
    heard = 0
    uplink.add(packet(0))
    async with aclosing(uplink.listen(FOREVER)) as sound, asyncio.timeout(10):
        async for pcm, _ in sound:
            assert pcm is not None
            heard += len(pcm) // FRAME
            if heard == 20:
                break
            await asyncio.sleep(0)
            uplink.add(packet(heard))


async def test_the_end_ends_whoever_listens() -> None:
    uplink = Uplink(VirtualClock())
    listening = asyncio.create_task(next_sound(uplink))
    await asyncio.sleep(0)
    uplink.end()
    with pytest.raises(EOFError):
        await listening


async def test_rubbish_does_not_stop_the_line() -> None:
    uplink = Uplink(VirtualClock())
    rubbish = packet(0)
    rubbish.payload = np.random.default_rng(3).bytes(40)
    uplink.add(rubbish)
    uplink.add(packet(1))
    pcm, _ = await next_sound(uplink)
    assert pcm is not None
