"""A server that speaks Visavis' contract and does what a test tells it, word by word.

For the page's own tests: they need a server that is full, silent or rude on demand, at once.
"""

import asyncio
import contextlib
import fractions
import importlib.resources
import itertools
import json
import socket
import uuid
from collections.abc import AsyncIterator
from typing import Any

import av
import numpy as np
import uvicorn
from aiortc import MediaStreamTrack, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import VideoStreamTrack
from aiortc.sdp import candidate_from_sdp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

WEB = importlib.resources.files("web")
RATE = 48_000
FRAME = 960
SIDE = 128

REPORTS = ("visavis.clock", "visavis.observed")
"""What a client sends all the time, whatever happens."""


class Picture(VideoStreamTrack):
    """A plain picture that changes a little with every frame."""

    async def recv(self) -> av.VideoFrame:
        pts, time_base = await self.next_timestamp()
        shade = np.full((SIDE, SIDE, 3), 96 + pts // 3000 % 64, np.uint8)
        frame = av.VideoFrame.from_ndarray(shade, format="bgr24")
        frame.pts, frame.time_base = pts, time_base
        return frame


class Tone(MediaStreamTrack):
    """440 Hz, in real time."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._frames = itertools.count()
        self._start: float | None = None

    async def recv(self) -> av.AudioFrame:
        index = next(self._frames)
        loop = asyncio.get_running_loop()
        self._start = self._start or loop.time()
        await asyncio.sleep(self._start + index * FRAME / RATE - loop.time())
        times = np.arange(index * FRAME, (index + 1) * FRAME) / RATE
        wave = (3000 * np.sin(2 * np.pi * 440 * times)).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(wave[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, index * FRAME, fractions.Fraction(1, RATE)
        return frame


class FakeSession:
    """One client's connection. `messages` holds what it sent, but for its `reports`, and `pings` the times it
    sent pings at, in ms."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self.pc = RTCPeerConnection()
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.pings: asyncio.Queue[int] = asyncio.Queue()
        self.ready = asyncio.Event()
        self.closed = asyncio.Event()
        self._channel: RTCDataChannel | None = None
        self.pc.on("datachannel", self._adopt)
        self.pc.on("connectionstatechange", self._watch)

    async def answer(self, offer: RTCSessionDescription) -> RTCSessionDescription:
        await self.pc.setRemoteDescription(offer)
        for transceiver in self.pc.getTransceivers():
            transceiver.sender.replaceTrack(Tone() if transceiver.kind == "audio" else Picture())
            transceiver.direction = "sendrecv" if transceiver.kind == "audio" else "sendonly"
        await self.pc.setLocalDescription(await self.pc.createAnswer())
        return self.pc.localDescription

    def send(self, kind: str, data: object = None) -> None:
        envelope = {"id": "0", "label": "rtvi-ai", "type": kind, "data": data or {}}
        self.send_raw(json.dumps(envelope))

    def send_raw(self, text: str) -> None:
        assert self._channel is not None
        self._channel.send(text)

    def state(self, *, user: str = "silent", agent: str = "idle", mood: str = "idle") -> None:
        self.send("server-message", {"type": "visavis.state", "user": user, "agent": agent, "mood": mood})

    def say(self, text: str) -> None:
        """The words of a reply, as if they were spoken."""
        for word in text.split():
            self.send("bot-tts-text", {"text": word})

    def hear(self, text: str, *, final: bool = True) -> None:
        """What the user said, or typed."""
        self.send("user-transcription", {"text": text, "final": final, "timestamp": "", "user_id": "user"})

    def end_reply(self, **record: object) -> None:
        self.send("bot-stopped-speaking")
        self.send("server-message", {"type": "visavis.turn", "record": record})

    def measure(self, **record: object) -> None:
        """The record of a turn, once it is known what was heard and seen of it."""
        self.send("server-message", {"type": "visavis.measured", "record": record})

    async def expect(self, kind: str) -> dict[str, Any]:
        """The next message of a kind; those before it are let pass."""
        while True:
            message = await self.messages.get()
            if message["type"] == kind:
                return message["message"] if kind == "signalling" else message["data"]

    async def close(self) -> None:
        await self.pc.close()

    def _adopt(self, channel: RTCDataChannel) -> None:
        self._channel = channel
        channel.on("message", self._receive)

    def _receive(self, text: str) -> None:
        if text.startswith("ping"):
            self.pings.put_nowait(int(text.removeprefix("ping: ")))
            return
        message = json.loads(text)
        name = message["data"]["t"] if message["type"] == "client-message" else None
        if name == "visavis.clock":
            self._tell_time(message["data"]["d"]["asked"])
        if name in REPORTS:
            self.reports.put_nowait(message)
            return
        self.messages.put_nowait(message)
        if message["type"] == "client-ready":
            self.send("bot-ready", {"version": "2.1.0", "about": {"library": "fake"}})
            self.ready.set()

    def _tell_time(self, asked: float) -> None:
        now = asyncio.get_running_loop().time()
        answer = {"type": "visavis.clock", "asked": asked, "received": now, "answered": now}
        self.send("server-message", answer)

    def _watch(self) -> None:
        if self.pc.connectionState in ("closed", "failed"):
            self.closed.set()


class FakeServer:
    """Serves the page and answers offers. `refusal` (status, code) turns the next offers away;
    `remembers` says whether a call whose connection was lost can go on."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.config = {
            "ice_servers": [],
            "name": "Vis",
            "server_version": "0",
            "max_text_chars": 2000,
            "greeting": "Hello.",
        }
        self.refusal: tuple[int, str] | None = None
        self.remembers = True
        self.offers = 0
        self._sessions: dict[str, FakeSession] = {}
        self._waiting: asyncio.Queue[FakeSession] = asyncio.Queue()

    async def session(self) -> FakeSession:
        """The next session a client opened, once that client is ready."""
        session = await self._waiting.get()
        await session.ready.wait()
        return session

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/api/config", self._config),
                Route("/api/offer", self._offer, methods=["POST"]),
                Route("/api/offer", self._candidates, methods=["PATCH"]),
                Mount("/web", StaticFiles(directory=str(WEB))),
            ]
        )

    async def _page(self, request: Request) -> Response:
        return FileResponse(str(WEB / "index.html"))

    async def _config(self, request: Request) -> Response:
        return JSONResponse(self.config)

    async def _offer(self, request: Request) -> Response:
        self.offers += 1
        if self.refusal is not None:
            status, code = self.refusal
            return JSONResponse({"error": {"code": code, "message": "as the test says"}}, status)
        body = await request.json()
        session = FakeSession()
        if self.remembers and body.get("restart_pc") and body["pc_id"] in self._sessions:
            session.id = body["pc_id"]
        self._sessions[session.id] = session
        answer = await session.answer(RTCSessionDescription(body["sdp"], body["type"]))
        self._waiting.put_nowait(session)
        return JSONResponse({"sdp": answer.sdp, "type": answer.type, "pc_id": session.id})

    async def _candidates(self, request: Request) -> Response:
        body = await request.json()
        session = self._sessions[body["pc_id"]]
        for item in body["candidates"]:
            candidate = candidate_from_sdp(item["candidate"].removeprefix("candidate:"))
            candidate.sdpMid, candidate.sdpMLineIndex = item["sdp_mid"], item["sdp_mline_index"]
            await session.pc.addIceCandidate(candidate)
        return JSONResponse({"status": "success"})


@contextlib.asynccontextmanager
async def fake_server() -> AsyncIterator[FakeServer]:
    """A fake server on a free port of this machine, on the running loop."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = FakeServer(f"http://localhost:{listener.getsockname()[1]}/")
        http = uvicorn.Server(uvicorn.Config(server.app(), log_level="warning", lifespan="off"))
        async with asyncio.TaskGroup() as tasks:
            # The socket listens already: requests wait until uvicorn takes them.
            tasks.create_task(http.serve(sockets=[listener]))
            yield server
            await server.close()
            http.should_exit = True
