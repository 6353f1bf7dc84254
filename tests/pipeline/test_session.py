"""A session on a real wire: two aiortc peers in one process, everything real but the models."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import psutil
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack

from pipeline.clock import MonotonicClock
from pipeline.errors import BadOfferError
from pipeline.events import TurnTrace
from pipeline.session import Session, SessionSettings
from pipeline.stages import Lines, Stages
from pipeline.webrtc.peer import Candidate
from pipeline.webrtc.tuning.loopback import offer_loopback
from tests.pipeline.test_dialogue import Models, Portrait, SilentEar, speech
from tests.unobserved import Unobserved

pytestmark = pytest.mark.loopback

offer_loopback()


class DeafEar(SilentEar):
    def reconnected(self) -> None:
        pass

    def hear(self, pcm: Any, at: float) -> list[Any]:
        self.samples = getattr(self, "samples", 0) + len(pcm)
        return []

    def mute(self, at: float) -> list[Any]:
        return []


class Caller:
    def __init__(self) -> None:
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.channel = self.connection.createDataChannel("chat")
        self.told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.open = asyncio.Event()
        self.closed = asyncio.Event()
        self.channel.on("open", self.open.set)
        self.channel.on("close", self.closed.set)
        self.channel.on("message", lambda text: self.told.put_nowait(json.loads(text)))
        self.connection.addTransceiver(AudioStreamTrack(), direction="sendrecv")
        self.video = self.connection.addTransceiver("video", direction="recvonly")

    async def connect(self, session: Session) -> None:
        await self.connection.setLocalDescription(await self.connection.createOffer())
        answer = await session.peer.answer(self.connection.localDescription.sdp)
        await self.connection.setRemoteDescription(RTCSessionDescription(answer.sdp, answer.type))

    def send(self, kind: str, data: object = None) -> None:
        self.channel.send(json.dumps({"id": "x", "label": "rtvi-ai", "type": kind, "data": data}))

    async def until(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(15):
            while True:
                message = await self.told.get()
                data = message.get("data") or {}
                if kind in (message["type"], data.get("type")):
                    return data


def session_with(executor: ThreadPoolExecutor, turns: list[TurnTrace], **settings: Any) -> Session:
    clock = MonotonicClock()
    models, portrait = Models(clock), Portrait()  # type: ignore[arg-type]
    stages = Stages(
        ear=DeafEar(),
        transcriber=models,
        prompts=models,
        language_model=models,
        synthesizer=models.voice,
        performer=portrait,
        face=portrait,
        render_executor=executor,
        lines=Lines(speech("Sorry.")),
    )

    timeline = Unobserved()
    timeline.turns = turns
    return Session("s1", stages, SessionSettings(**settings), clock, timeline)


@asynccontextmanager
async def in_call(
    **settings: Any,
) -> AsyncIterator[tuple[Caller, Session, list[TurnTrace], asyncio.Task[None]]]:
    turns: list[TurnTrace] = []
    with ThreadPoolExecutor(1) as executor:
        session = session_with(executor, turns, **settings)
        caller = Caller()
        await caller.connect(session)
        running = asyncio.create_task(session.run())
        try:
            async with asyncio.timeout(15):
                await caller.open.wait()
            yield caller, session, turns, running
        finally:
            session.hang_up()
            await running
            await caller.connection.close()


async def test_a_typed_turn_is_heard_and_seen() -> None:
    async with in_call() as (caller, _, turns, _):
        caller.send("client-ready", {"version": "2.1.0"})
        ready = await caller.until("bot-ready")
        assert ready["version"].startswith("2.")
        caller.send("send-text", {"content": "How are you?"})
        await caller.until("bot-started-speaking")
        receivers = {t.kind: t.receiver.track for t in caller.connection.getTransceivers()}
        loudest = 0
        for _ in range(40):
            loudest = max(loudest, int(np.abs((await receivers["audio"].recv()).to_ndarray()).max()))
        assert loudest > 500
        frame = await receivers["video"].recv()
        assert (frame.width, frame.height) == (16, 16)
        await caller.until("visavis.turn")
        assert turns[0].heard_text == turns[0].reply_text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no json", "bad_message"),
        ("x" * 60_000, "bad_message"),
        (json.dumps({"label": "rtvi-ai", "type": "send-text", "data": {}}), "bad_message"),
    ],
)
async def test_a_bad_message_gets_an_answer_and_the_call_goes_on(text: str, code: str) -> None:
    async with in_call() as (caller, _, turns, _):
        caller.channel.send(text)
        assert (await caller.until("error"))["code"] == code
        caller.send("send-text", {"content": "Still there?"})
        await caller.until("visavis.turn")
        assert len(turns) == 1


@pytest.mark.parametrize(("content", "code"), [("x" * 20_000, "text_too_long"), ("  \n ", "text_empty")])
async def test_text_that_cannot_be_read_is_refused(content: str, code: str) -> None:
    async with in_call() as (caller, _, turns, _):
        caller.send("send-text", {"content": content})
        assert (await caller.until("error"))["code"] == code
        assert turns == []


@pytest.mark.parametrize("content", ["🙂🙂🙂", "你好，你叫什么名字？", "مرحبا"])
async def test_emoji_and_other_scripts_are_turns_like_any_other(content: str) -> None:
    async with in_call() as (caller, _, turns, _):
        caller.send("send-text", {"content": content})
        await caller.until("visavis.turn")
        assert turns[0].user_text == content


async def test_the_client_hangs_up_in_mid_reply() -> None:
    async with in_call() as (caller, _, turns, running):
        caller.send("send-text", {"content": "How are you?"})
        await caller.until("bot-started-speaking")
        await caller.connection.close()
        async with asyncio.timeout(15):
            await running
        assert turns[0].failed == "disconnected"


async def test_disconnect_bot_ends_the_session() -> None:
    async with in_call() as (caller, _, _, running):
        caller.send("disconnect-bot", {})
        async with asyncio.timeout(15):
            await running


async def test_a_session_nobody_speaks_in_is_closed() -> None:
    async with in_call(idle_timeout=0.5) as (caller, _, _, running):
        assert (await caller.until("error"))["code"] == "idle"
        async with asyncio.timeout(15):
            await running


async def test_an_offer_nobody_connects_to_is_given_up() -> None:
    with ThreadPoolExecutor(1) as executor:
        session = session_with(executor, [], connect_timeout=0.3)
        caller = Caller()
        await caller.connection.setLocalDescription(await caller.connection.createOffer())
        await session.peer.answer(caller.connection.localDescription.sdp)
        await caller.connection.close()
        async with asyncio.timeout(15):
            await session.run()


async def test_renegotiation_keeps_the_call() -> None:
    async with in_call() as (caller, session, turns, _):
        await caller.connect(session)
        caller.send("send-text", {"content": "Still there?"})
        await caller.until("visavis.turn")
        assert len(turns) == 1


async def test_a_restart_goes_on_with_the_conversation_behind_a_new_connection() -> None:
    async with in_call() as (caller, session, turns, _):
        caller.send("send-text", {"content": "First."})
        await caller.until("visavis.turn")
        again = Caller()
        await again.connection.setLocalDescription(await again.connection.createOffer())
        answer = await session.restart(again.connection.localDescription.sdp)
        await again.connection.setRemoteDescription(RTCSessionDescription(answer.sdp, answer.type))
        async with asyncio.timeout(15):
            await again.open.wait()
            await caller.closed.wait()
        again.send("send-text", {"content": "Second."})
        await again.until("visavis.turn")
        assert [turn.user_text for turn in turns] == ["First.", "Second."]
        while not caller.told.empty():
            assert caller.told.get_nowait().get("type") != "signalling", "the old end is not told to leave"
        await again.connection.close()


async def test_a_bad_restart_leaves_the_call_as_it_is() -> None:
    async with in_call() as (caller, session, turns, _):
        with pytest.raises(BadOfferError):
            await session.restart("v=0 rubbish")
        caller.send("send-text", {"content": "Still there?"})
        await caller.until("visavis.turn")
        assert len(turns) == 1


async def test_half_a_surrogate_pair_does_not_end_the_call() -> None:
    async with in_call() as (caller, _, turns, _):
        caller.channel.send(
            '{"id":"\\ud83d","label":"rtvi-ai","type":"send-text","data":{"content":"hi \\ud83d"}}'
        )
        await caller.until("visavis.turn")
        assert turns[0].user_text == "hi ?"


async def test_a_fault_in_what_is_sent_ends_the_session_instead_of_leaving_it_mute() -> None:
    with ThreadPoolExecutor(1) as executor:
        session = session_with(executor, [])

        def broken(now: float) -> float | None:
            raise ZeroDivisionError

        session._dialogue.delivery.playout.position = broken  # type: ignore[method-assign]
        caller = Caller()
        await caller.connect(session)
        with pytest.raises(ExceptionGroup):
            async with asyncio.timeout(15):
                await session.run()
        await caller.connection.close()


@pytest.mark.parametrize(
    "sdp",
    ["", "hello", "v=0\r\nrubbish", "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n", "v=0\r\nm=audio"],
)
async def test_what_is_not_an_offer_is_refused(sdp: str) -> None:
    with ThreadPoolExecutor(1) as executor:
        session = session_with(executor, [])
        with pytest.raises(BadOfferError):
            await session.peer.answer(sdp)
        await session.peer.close()


async def test_an_offer_without_audio_is_refused() -> None:
    with ThreadPoolExecutor(1) as executor:
        session = session_with(executor, [])
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connection.addTransceiver("video", direction="recvonly")
        await connection.setLocalDescription(await connection.createOffer())
        with pytest.raises(BadOfferError, match="no audio"):
            await session.peer.answer(connection.localDescription.sdp)
        await session.peer.close()
        await connection.close()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("m=audio", "m=foo", "no audio|not usable"),
        ("a=rtpmap:96 opus", "a=fmtp:77 x=1\r\na=rtpmap:96 opus", "not usable SDP"),
        ("a=fingerprint:", "a=fingerprint-of:", "no a=fingerprint"),
        ("a=fingerprint:sha-", "a=fingerprint:md", "no a=fingerprint"),
    ],
)
async def test_an_offer_that_aiortc_stumbles_over_is_refused_and_leaves_nothing(
    old: str, new: str, told: str
) -> None:
    with ThreadPoolExecutor(1) as executor:
        session, caller = session_with(executor, []), Caller()
        await caller.connection.setLocalDescription(await caller.connection.createOffer())
        sdp = caller.connection.localDescription.sdp
        assert old in sdp
        with pytest.raises(BadOfferError, match=told):
            await session.peer.answer(sdp.replace(old, new))
        await session.peer.close()
        await caller.connection.close()


async def test_an_offer_without_opus_is_refused() -> None:
    with ThreadPoolExecutor(1) as executor:
        session, caller = session_with(executor, []), Caller()
        await caller.connection.setLocalDescription(await caller.connection.createOffer())
        sdp = caller.connection.localDescription.sdp.replace("opus/48000", "G722/48000")
        with pytest.raises(BadOfferError, match="no Opus"):
            await session.peer.answer(sdp)
        await session.peer.close()
        await caller.connection.close()


async def test_a_candidate_that_is_none_is_refused() -> None:
    async with in_call() as (_, session, _, _):
        await session.peer.add_candidate(Candidate("", "0", 0))
        with pytest.raises(BadOfferError, match="not an ICE candidate"):
            await session.peer.add_candidate(Candidate("candidate:nonsense", "0", 0))


def _threads() -> list[str]:
    # The loop's own pool, in which aiortc encodes, starts its threads as it needs them and keeps them.
    names = (thread.name for thread in threading.enumerate())
    return sorted(name for name in names if not name.startswith("asyncio_"))


async def test_nothing_of_a_session_survives_it() -> None:
    async with in_call() as (caller, _, _, _):  # whatever is loaded once is loaded now
        caller.send("send-text", {"content": "One."})
        await caller.until("visavis.turn")
    tasks, threads = len(asyncio.all_tasks()), _threads()
    sockets = psutil.Process().num_fds()
    for _ in range(3):
        async with in_call() as (caller, _, _, _):
            caller.send("send-text", {"content": "One."})
            await caller.until("bot-started-speaking")
    assert len(asyncio.all_tasks()) == tasks
    assert _threads() == threads
    assert psutil.Process().num_fds() == sockets
