"""A user without a browser: a WebRTC peer that speaks files, listens, and reads the data channel."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
from aiortc import (
    RTCConfiguration,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCSessionDescription,
)

from pipeline.clock import Clock
from pipeline.errors import VisavisError
from pipeline.webrtc import rtvi
from services.lab.arrivals import LOOK_AHEAD, PLAYOUT, PictureTap, SoundTap, tap
from services.lab.microphone import Microphone, Utterance
from services.lab.playout_buffer import PlayoutBuffer
from services.lab.speech_file import SpeechFile

_log = logging.getLogger(__name__)

_REPORT_EVERY = 0.2
"""Seconds between two reports of what is being played and was seen."""

_ASK_FIRST, _ASK_EVERY = 0.1, 2.0
"""Seconds between two questions for the server's time: the first two, and after some doubling."""

CONNECT_TIMEOUT = 30.0
"""Seconds for the whole way to an open data channel."""


class CallError(VisavisError):
    """The call could not be made, or ended before it was over."""

    code = "call_failed"


@dataclass(frozen=True, slots=True)
class Told:
    """A data-channel message and when it arrived."""

    at: float
    type: str
    data: dict[str, Any]


class Way(Protocol):
    """What lies between a caller and the server, and sees to it that the call goes through it."""

    def offer(self, sdp: str) -> str:
        """The caller's offer as the server is to see it."""
        ...

    async def answer(self, sdp: str) -> str:
        """The server's answer as the caller is to see it. Raises CallError."""
        ...


class SyntheticUser:
    """One caller in a call. Made by `calling`."""

    def __init__(self, clock: Clock, connection: RTCPeerConnection, *, keep_pictures: bool) -> None:
        self.microphone = Microphone(clock)
        self.sound = SoundTap(clock)
        self.pictures = PictureTap(clock, keep_pictures)
        self.told: list[Told] = []
        self.telling = True
        """Whether the server is told what is played and seen, and asked for its time."""
        self.over = asyncio.Event()
        """The call ended, from whichever side."""
        self._clock = clock
        self._connection = connection
        self._player = PlayoutBuffer()
        self._stamps: list[float] | None = None
        """Of the last question for the time and its answer."""
        self._news = asyncio.Event()
        self._ready = asyncio.Event()
        self._channel = connection.createDataChannel("chat", ordered=True)
        self._channel.on("open", self._on_open)
        self._channel.on("message", self._on_message)
        self._channel.on("close", self._on_close)
        connection.on("connectionstatechange", self._on_state)
        audio = connection.addTransceiver(self.microphone, direction="sendrecv")
        video = connection.addTransceiver("video", direction="recvonly")
        capabilities = RTCRtpReceiver.getCapabilities("video")
        assert capabilities is not None
        video.setCodecPreferences([codec for codec in capabilities.codecs if codec.mimeType == "video/VP8"])
        tap(audio.receiver, self.sound)
        tap(video.receiver, self.pictures)

    def say(self, file: SpeechFile) -> Utterance:
        return self.microphone.say(file)

    async def finish(self, utterance: Utterance) -> None:
        """Wait until it is said to its end. Raises CallError: after a call nobody pulls the microphone."""
        waits = [asyncio.create_task(event.wait()) for event in (utterance.done, self.over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not utterance.done.is_set():
            raise CallError("the server ended the call in mid-question")
        self._tell("visavis.speech_end", at=utterance.end)

    def type(self, text: str) -> None:
        """Send text in place of speech."""
        self._channel.send(rtvi.message("send-text", {"content": text, "options": {}}))

    async def until(self, wanted: Callable[[Told], bool], *, since: int = 0) -> Told:
        """The first message that is `wanted`, from index `since` of `told` on. Raises CallError."""
        while True:
            for told in self.told[since:]:
                if wanted(told):
                    return told
            since = len(self.told)
            if self.over.is_set():
                raise CallError("the server ended the call")
            await self._news.wait()

    async def report(self) -> None:
        """Tell the server what is being played and was seen, as the page does, until cancelled."""
        due = self._clock.now()
        while True:
            due += _REPORT_EVERY
            await self._clock.sleep_until(due)
            playing = self.sound.playing(self._clock.now() - PLAYOUT - LOOK_AHEAD)
            if playing is not None:
                self._tell("visavis.playout", rtp_timestamp=playing)
            played = self._player.play(self.sound.fresh())
            self._tell(
                "visavis.observed",
                sound=played.moments,
                concealed=played.concealed,
                pictures=[(stamp, at + PLAYOUT) for at, stamp in self.pictures.fresh()],
            )

    async def ask_the_time(self) -> None:
        """Tie the server's clock to this one, until cancelled."""
        wait = _ASK_FIRST
        while True:
            self._tell("visavis.clock", asked=self._clock.now(), before=self._stamps)
            await self._clock.sleep_until(self._clock.now() + wait)
            wait = min(_ASK_EVERY, 2 * wait)

    def _tell(self, name: str, **data: Any) -> None:
        if self.telling and self._channel.readyState == "open":
            self._channel.send(rtvi.message("client-message", {"t": name, "d": data}))

    async def negotiate(self, http: httpx.AsyncClient, url: str, way: Way | None) -> None:
        """Offer, answer, and wait until the bot is ready. Raises CallError."""
        await self._connection.setLocalDescription(await self._connection.createOffer())
        offer = self._connection.localDescription
        sdp = offer.sdp if way is None else way.offer(offer.sdp)
        try:
            response = await http.post(
                f"{url}/api/offer",
                json={"sdp": sdp, "type": offer.type, "pc_id": None, "restart_pc": False},
            )
        except httpx.HTTPError as error:
            raise CallError(f"no server answers at {url}: {error or type(error).__name__}") from error
        if response.status_code != 200:
            raise CallError(f"{url} refused the call ({response.status_code}): {_reason(response)}")
        answer = response.json()
        sdp = answer["sdp"] if way is None else await way.answer(answer["sdp"])
        await self._connection.setRemoteDescription(RTCSessionDescription(sdp, answer["type"]))
        await self._ready.wait()

    def _on_open(self) -> None:
        about = {"library": "visavis-lab"}
        self._channel.send(rtvi.message("client-ready", {"version": rtvi.VERSION, "about": about}))

    def _on_message(self, text: str) -> None:
        message = json.loads(text)
        kind, data = message.get("type", ""), message.get("data") or {}
        if kind == "server-message":
            kind = data.get("type", kind)
        if kind == "bot-ready":
            self._ready.set()
        if kind == "visavis.clock":
            self._stamps = [data["asked"], data["received"], data["answered"], self._clock.now()]
            return
        self.told.append(Told(self._clock.now(), kind, data))
        self._wake()

    def _on_state(self) -> None:
        if self._connection.connectionState in ("failed", "closed"):
            self._on_close()

    def _on_close(self) -> None:
        self.over.set()
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


@asynccontextmanager
async def calling(
    url: str, clock: Clock, *, keep_pictures: bool = False, way: Way | None = None
) -> AsyncIterator[SyntheticUser]:
    """A caller whose call is up, through `way` if there is one. Raises CallError."""
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    user = SyntheticUser(clock, connection, keep_pictures=keep_pictures)
    try:
        async with httpx.AsyncClient(timeout=CONNECT_TIMEOUT) as http:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT):
                    await user.negotiate(http, url, way)
            except TimeoutError as error:
                raise CallError(f"{url}: no connection within {CONNECT_TIMEOUT:g} s") from error
        reporting = [asyncio.create_task(each) for each in (user.report(), user.ask_the_time())]
        try:
            yield user
        finally:
            for task in reporting:
                task.cancel()
            for fault in await asyncio.gather(*reporting, return_exceptions=True):
                if isinstance(fault, Exception):  # not that it was cancelled
                    raise fault
    finally:
        await connection.close()


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
