"""A call between a caller made of aiortc alone and a Peer of ours, whose way can lose and delay packets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

from pipeline.clock import MonotonicClock
from pipeline.webrtc.peer import Peer
from pipeline.webrtc.tuning.loopback import offer_loopback
from tests.pipeline.webrtc.tuning.sounding import frame, voice

offer_loopback()


class StepMicrophone(MediaStreamTrack):
    """Sends a frame each time it is told to, and never otherwise."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._steps: asyncio.Queue[None] = asyncio.Queue()
        self._index = 0

    def step(self) -> None:
        self._steps.put_nowait(None)

    async def recv(self) -> AudioFrame:
        if self.readyState != "live":
            raise MediaStreamError
        await self._steps.get()
        self._index += 1
        return frame(voice(self._index - 1), self._index - 1)


class Way:
    """What happens to the caller's RTP: packet n is lost when `loses(n)`, and changes places with the
    next when `swaps(n)`."""

    def __init__(self, ice: Any) -> None:
        self.loses: Callable[[int], bool] = lambda index: False
        self.swaps: Callable[[int], bool] = lambda index: False
        self.sent: list[int] = []
        """Sequence numbers, lost ones too."""
        self._news = asyncio.Event()
        self._kept: bytes | None = None
        self._forward = ice._send
        ice._send = self._send

    async def until_sent(self, count: int) -> None:
        while len(self.sent) < count:
            self._news.clear()
            await self._news.wait()

    async def _send(self, data: bytes) -> None:
        if not _is_rtp(data):
            await self._forward(data)
            return
        index = len(self.sent)
        kept, self._kept = self._kept, None
        if not self.loses(index):
            if self.swaps(index):
                self._kept = data
            else:
                await self._forward(data)
        if kept is not None:
            await self._forward(kept)
        self.sent.append(int.from_bytes(data[2:4], "big"))
        self._news.set()


class Listener:
    """Reads a Peer's microphone and counts its samples."""

    def __init__(self, peer: Peer) -> None:
        self.samples = 0
        self._peer = peer
        self._news = asyncio.Event()

    async def run(self) -> None:
        async for pcm, _ in self._peer.microphone(3600.0):
            assert pcm is not None
            self.samples += len(pcm)
            self._news.set()

    async def until(self, samples: int) -> None:
        while self.samples < samples:
            self._news.clear()
            await self._news.wait()


@asynccontextmanager
async def calling(
    track: MediaStreamTrack | None,
    *tracks: MediaStreamTrack,
    camera: MediaStreamTrack | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[RTCPeerConnection, Peer, Way]]:
    """A connected call: `track` is what the caller says, `camera` what it shows, `tracks` are the peer's."""
    caller, peer = RTCPeerConnection(RTCConfiguration(iceServers=[])), Peer(MonotonicClock(), **settings)
    try:
        peer.add_tracks(*tracks)
        audio, _ = (
            caller.addTransceiver(own or kind, direction="sendrecv" if own else "recvonly")
            for kind, own in (("audio", track), ("video", camera))
        )
        way = Way(audio.sender.transport.transport)
        await negotiate(caller, peer)
        async with asyncio.timeout(15):
            await peer.connected.wait()
        yield caller, peer, way
    finally:
        await caller.close()
        await peer.close()


async def negotiate(caller: RTCPeerConnection, peer: Peer) -> None:
    await caller.setLocalDescription(await caller.createOffer())
    answer = await peer.answer(caller.localDescription.sdp)
    await caller.setRemoteDescription(RTCSessionDescription(answer.sdp, answer.type))


def _is_rtp(data: bytes) -> bool:
    return 128 <= data[0] < 192 and not 192 <= data[1] <= 223
