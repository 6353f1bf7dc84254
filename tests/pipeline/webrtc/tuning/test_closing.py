import asyncio
import threading

import pytest
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, VideoStreamTrack

from pipeline.clock import MonotonicClock
from pipeline.webrtc.peer import Peer
from pipeline.webrtc.tuning.closing import close
from pipeline.webrtc.tuning.loopback import offer_loopback

pytestmark = pytest.mark.loopback

offer_loopback()

SETTLED = 10.0


def receiving_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.endswith("-decoder")}


async def hang_up_after(seconds: float, *tracks: MediaStreamTrack) -> None:
    caller, peer = RTCPeerConnection(RTCConfiguration(iceServers=[])), Peer(MonotonicClock())
    peer.add_tracks(*tracks)
    caller.createDataChannel("chat")
    caller.addTransceiver(AudioStreamTrack(), direction="sendrecv")
    caller.addTransceiver("video", direction="recvonly")
    await caller.setLocalDescription(await caller.createOffer())
    answer = await peer.answer(caller.localDescription.sdp)
    await caller.setRemoteDescription(RTCSessionDescription(answer.sdp, answer.type))
    await asyncio.sleep(seconds)
    await peer.close()
    await close(caller)


@pytest.mark.parametrize("milliseconds", [0, 1, 2, 4, 8, 15, 25, 40, 80, 200])
async def test_a_call_that_ends_at_any_moment_leaves_neither_task_nor_thread(milliseconds: int) -> None:
    """How far connecting has come by then differs from machine to machine; what is left never does."""
    tasks, threads = asyncio.all_tasks(), receiving_threads()
    await hang_up_after(milliseconds / 1000, AudioStreamTrack(), VideoStreamTrack())
    assert receiving_threads() <= threads
    left = asyncio.all_tasks() - tasks
    if left:
        await asyncio.wait(left, timeout=SETTLED)
    assert [task for task in left if not task.done()] == []


async def test_a_peer_that_was_never_called_closes() -> None:
    tasks = asyncio.all_tasks()
    peer = Peer(MonotonicClock())
    await peer.close()
    await peer.close()
    assert asyncio.all_tasks() <= tasks
