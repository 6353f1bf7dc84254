"""The microphone's way on a real wire, two aiortc peers in one process.

Delay is counted in packets: when packet n has been sent, how many of those up to it are not yet out. One is
20 ms, and a slow machine changes nothing.
"""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiortc.mediastreams import VideoStreamTrack
from aiortc.rtp import RtpPacket

from pipeline.events import WIRE_RATE
from pipeline.webrtc.tuning.uplink import MAX_WAITING, Uplink
from tests.pipeline.webrtc.tuning.calls import Listener, StepMicrophone, Way, calling, negotiate
from tests.pipeline.webrtc.tuning.sounding import FRAME

pytestmark = pytest.mark.loopback

NEVER: Callable[[int], bool] = lambda index: False  # noqa: E731
WITHIN = 2
"""Packets, 40 ms, that sound may be behind beside trouble; the limit is 60 ms."""
PATIENT = 10.0
"""Seconds after which a packet that should be out counts as held back."""


class Line:
    """Sends packet after packet and knows how many of them are out."""

    def __init__(self, microphone: StepMicrophone, way: Way, listener: Listener, arrived: list[int]) -> None:
        self._microphone = microphone
        self._way = way
        self._listener = listener
        self._arrived = arrived
        self.first = 0
        """The packet the microphone began with; those before it found nobody."""

    async def open(self) -> None:
        """Send until the first is heard."""
        while not self._arrived:
            await self.send()
            try:
                async with asyncio.timeout(0.1):
                    await self._listener.until(1)
            except TimeoutError:
                pass
        self.first = self._way.sent.index(self._arrived[0])
        await self.out()

    async def send(self) -> int:
        """The number of the packet."""
        self._microphone.step()
        await self._way.until_sent(len(self._way.sent) + 1)
        return len(self._way.sent) - 1

    async def out(self) -> None:
        """Wait until everything that was sent is out, which needs no packet after it."""
        async with asyncio.timeout(PATIENT):
            await self._listener.until((len(self._way.sent) - self.first) * FRAME)

    @property
    def behind(self) -> float:
        """Packets sent and not out."""
        return len(self._way.sent) - self.first - self._listener.samples / FRAME


@asynccontextmanager
async def open_line(
    monkeypatch: pytest.MonkeyPatch,
    *,
    loses: Callable[[int], bool] = NEVER,
    swaps: Callable[[int], bool] = NEVER,
) -> AsyncIterator[Line]:
    """`loses` and `swaps` count from the first packet heard."""
    arrived: list[int] = []
    add = Uplink.add

    def noted(uplink: Uplink, packet: RtpPacket) -> tuple[bool, None]:
        arrived.append(packet.sequence_number)
        return add(uplink, packet)

    monkeypatch.setattr(Uplink, "add", noted)
    microphone = StepMicrophone()
    async with calling(microphone) as (_, peer, way), asyncio.TaskGroup() as tasks:
        listener = Listener(peer)
        listening = tasks.create_task(listener.run())
        line = Line(microphone, way, listener, arrived)
        async with asyncio.timeout(PATIENT):
            await line.open()
        start = len(way.sent)
        way.loses = lambda index: loses(index - start)
        way.swaps = lambda index: swaps(index - start)
        yield line
        listening.cancel()


async def follow(line: Line, count: int, trouble: Callable[[int], bool]) -> None:
    """Send `count` packets. Each must be out before the next is sent, but for those within reach of
    trouble, after which the delay must be gone."""
    recent = 0
    for index in range(count):
        await line.send()
        recent = WITHIN if trouble(index) else recent - 1
        if recent <= 0 and not trouble(index):
            await line.out()
    assert line.behind <= WITHIN


async def test_without_loss_every_packet_is_out_when_it_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_line(monkeypatch) as line:
        await follow(line, 100, NEVER)


@pytest.mark.parametrize("at", [1, 37])
async def test_a_single_loss_leaves_no_delay(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    async with open_line(monkeypatch, loses=lambda index: index == at) as line:
        await follow(line, at + 30, lambda index: index == at)


async def test_a_burst_leaves_no_delay_and_its_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    burst = range(20, 32)
    async with open_line(monkeypatch, loses=lambda index: index in burst) as line:
        await follow(line, 60, lambda index: index in burst)


async def test_packets_that_overtake_each_other_leave_no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_line(monkeypatch, swaps=lambda index: index % 7 == 3) as line:
        await follow(line, 60, lambda index: index % 7 == 3)


@pytest.mark.parametrize("seed", range(5))
async def test_two_packets_in_a_hundred_lost_at_random(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    lost = {index for index in range(300) if chance.random() < 0.02}
    assert lost
    async with open_line(monkeypatch, loses=lost.__contains__) as line:
        await follow(line, 300, lost.__contains__)


async def test_the_last_packet_is_out_though_one_before_it_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_line(monkeypatch, loses=lambda index: index == 5) as line:
        for _ in range(7):
            await line.send()
        await line.out()


async def test_a_microphone_that_nobody_reads_fills_no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    uplinks: list[Uplink] = []
    add = Uplink.add
    enough = asyncio.Event()

    def noted(uplink: Uplink, packet: RtpPacket) -> tuple[bool, None]:
        uplinks.append(uplink)
        if len(uplinks) == 300:
            enough.set()
        return add(uplink, packet)

    monkeypatch.setattr(Uplink, "add", noted)
    microphone = StepMicrophone()
    async with calling(microphone) as (_, peer, _), asyncio.timeout(2 * PATIENT):
        for _ in range(400):
            microphone.step()
        await enough.wait()
        receiver = next(t.receiver for t in peer._connection.getTransceivers() if t.kind == "audio")
        assert uplinks[0]._waiting_samples <= MAX_WAITING * WIRE_RATE
        assert uplinks[0].dropped > 0
        assert receiver.track._queue.empty()
        assert receiver._RTCRtpReceiver__decoder_queue.empty()


async def test_a_camera_is_neither_decoded_nor_queued() -> None:
    async with calling(StepMicrophone(), camera=VideoStreamTrack()) as (_, peer, _):
        receiver = next(t.receiver for t in peer._connection.getTransceivers() if t.kind == "video")
        handle, packets, enough = receiver._handle_rtp_packet, [0], asyncio.Event()

        async def counted(packet: RtpPacket, arrival_time_ms: int) -> None:
            await handle(packet, arrival_time_ms=arrival_time_ms)
            packets[0] += 1
            if packets[0] == 20:
                enough.set()

        receiver._handle_rtp_packet = counted
        async with asyncio.timeout(PATIENT):
            await enough.wait()
        assert receiver.track._queue.empty()
        assert receiver._RTCRtpReceiver__decoder_queue.empty()
        assert await receiver.getStats()
        assert receiver._RTCRtpReceiver__remote_streams == {}, "nothing got past the switch"


async def test_a_microphone_that_comes_later_is_heard() -> None:
    async with calling(None) as (caller, peer, _), asyncio.TaskGroup() as tasks:
        listener = Listener(peer)
        listening = tasks.create_task(listener.run())
        microphone = StepMicrophone()
        audio = caller.getTransceivers()[0]
        audio.sender.replaceTrack(microphone)
        audio.direction = "sendrecv"
        await negotiate(caller, peer)
        for _ in range(20):
            microphone.step()
        async with asyncio.timeout(PATIENT):
            await listener.until(5 * FRAME)
        listening.cancel()


async def test_nothing_survives_a_call() -> None:
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())
    microphone = StepMicrophone()
    async with calling(microphone) as (_, peer, way):
        listening = asyncio.create_task(Listener(peer).run())
        microphone.step()
        await way.until_sent(1)
        await peer.close()
        async with asyncio.timeout(PATIENT):
            await listening
    assert {thread for thread in threading.enumerate() if "decoder" in thread.name} <= threads
    leftover = asyncio.all_tasks() - tasks
    if leftover:
        await asyncio.wait(leftover, timeout=PATIENT)
    assert all(task.done() for task in leftover)
