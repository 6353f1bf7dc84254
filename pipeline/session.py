"""A session: one peer, one dialogue, and the scope of everything they started.

It owns the wire and the session's life: who may connect for how long, what comes in and where it
goes. What is said and when is the dialogue's business.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from aiortc import RTCSessionDescription

from pipeline.clock import Clock
from pipeline.dialogue import Dialogue
from pipeline.errors import BadMessageError, BadOfferError
from pipeline.events import Timeline
from pipeline.stages import Stages
from pipeline.webrtc import rtvi
from pipeline.webrtc.announcer import Announcer
from pipeline.webrtc.peer import IceServer, Peer
from pipeline.webrtc.tracks import FaceTrack, VoiceTrack
from pipeline.webrtc.tuning.encoders import Bitrate

_log = logging.getLogger(__name__)

_MICROPHONE_GAP = 1.0
"""Seconds without a packet after which a microphone counts as silent, so that no turn hangs on it."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    name: str = "Vis"
    version: str = "0"
    max_text_chars: int = 2000
    connect_timeout: float = 30.0
    """Seconds from the offer to a connected call."""
    idle_timeout: float = 300.0
    """Seconds without a turn after which a session is closed."""
    fps: int = 25
    video_codec: str = "VP8"
    bitrate: Bitrate = field(default_factory=Bitrate)
    ice_servers: Sequence[IceServer] = field(default_factory=tuple)


class Session:
    """Create it, answer the offer with its `peer`, then `run` it to its end."""

    def __init__(
        self,
        session_id: str,
        stages: Stages,
        settings: SessionSettings,
        clock: Clock,
        timeline: Timeline,
        connect: Callable[..., Peer] = Peer,
    ) -> None:
        """`connect` makes the peer, and another when the client comes back behind a new connection."""
        self.session_id = session_id
        self._connect = connect
        self._settings = settings
        self._stages = stages
        self._clock = clock
        self._timeline = timeline
        self._scope = asyncio.TaskGroup()
        self._hang_up = asyncio.Event()
        self._restarted = asyncio.Event()
        self._fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = False
        self._announcer = Announcer(self._send, settings.name, settings.version)
        self._dialogue = Dialogue(
            session_id,
            stages,
            clock,
            self._announcer,
            timeline,
            self._scope,
            rtp_origin=lambda: self._rtp_origin("audio"),
        )
        timeline.connected(self._rtp_origin)
        self.peer = self._new_peer()

    def measured(self, record: Mapping[str, Any]) -> None:
        """What the client heard and saw of a turn is known."""
        self._announcer.measured(record)

    def hang_up(self) -> None:
        """End the session soon; `run` returns."""
        self._hang_up.set()

    async def restart(self, sdp: str) -> RTCSessionDescription:
        """Go on behind a new connection, the old one being lost.

        Raises BadOfferError, and then the old one, if it is still there, goes on.
        """
        peer = self._new_peer()
        try:
            answer = await peer.answer(sdp)
            if self._ended:
                raise BadOfferError("the call is over; offer a new one")
        except BaseException:
            await peer.close()
            raise
        lost, self.peer = self.peer, peer
        self._stages.ear.reconnected()
        self._restarted.set()
        await lost.close()
        return answer

    async def run(self) -> None:
        """The call, from the offer's answer to its end. Afterwards nothing of it survives."""
        try:
            async with self._scope as scope:
                watching = scope.create_task(self._watch_tracks())
                try:
                    while not await self._over(self.peer):
                        self._dialogue.microphone_silent()
                finally:
                    watching.cancel()
                    self._ended = True  # before its tasks are gone: a restart must not join a call that ends
                    self._dialogue.close()
                    self._timeline.close()
        finally:
            self._announcer.left()
            await self.peer.close()

    async def _over(self, peer: Peer) -> bool:
        """Serve one connection to its end; False when another has taken its place."""
        self._restarted.clear()
        loops = [self._scope.create_task(self._hear(peer)), self._scope.create_task(self._listen(peer))]
        await self._until_over(peer)
        for loop in loops:
            loop.cancel()
        return self.peer is peer

    def _new_peer(self) -> Peer:
        settings, delivery = self._settings, self._dialogue.delivery
        peer = self._connect(
            self._clock,
            ice_servers=settings.ice_servers,
            video_codec=settings.video_codec,
            bitrate=settings.bitrate,
            on_sent=self._timeline.packet_sent,
        )
        origin = self._clock.now()
        face = FaceTrack(
            self._clock,
            origin,
            delivery.playout,
            self._stages.performer,
            self._stages.face,
            self._dialogue.mood,
            self._stages.render_executor,
            self._timeline,
            lambda: delivery.playing,
            wanted_elsewhere=lambda: self._stages.headroom.wanted_elsewhere(self.session_id),
            fps=settings.fps,
            on_fault=self._on_fault,
        )
        voice = VoiceTrack(
            self._clock,
            origin,
            delivery.playout,
            delivery.position,
            self._timeline,
            lambda: delivery.playing,
            on_fault=self._on_fault,
        )
        peer.add_tracks(voice, face)
        return peer

    def _rtp_origin(self, kind: str) -> int | None:
        """Of the connection there is now."""
        return self.peer.rtp_origin(kind)

    def _on_fault(self, fault: Exception) -> None:
        if not self._fault.done():
            self._fault.set_exception(fault)

    async def _watch_tracks(self) -> None:
        """A fault in what is sent ends the session, as any other fault of ours does."""
        await self._fault

    def _send(self, text: str) -> None:
        self.peer.send(text)

    async def _hear(self, peer: Peer) -> None:
        async with aclosing(peer.microphone(_MICROPHONE_GAP)) as microphone:
            async for pcm, at in microphone:
                if pcm is None:
                    self._dialogue.microphone_silent()
                    continue
                for hearing in self._stages.ear.hear(pcm, at):
                    self._dialogue.heard(hearing)

    async def _listen(self, peer: Peer) -> None:
        async with aclosing(peer.messages()) as messages:
            async for message in messages:
                self._read(message)

    def _read(self, message: rtvi.Incoming | BadMessageError) -> None:
        match message:
            case rtvi.ClientReady(id=identifier):
                self._announcer.ready(identifier)
                self._dialogue.open()
            case rtvi.SendText(content=content):
                self._read_text(content.strip())
            case rtvi.TrackStatus(receiver_index=0, enabled=False):
                self._dialogue.microphone_silent()
            case rtvi.PlayoutReport(rtp_timestamp=rtp_timestamp):
                self._dialogue.delivery.position.report(rtp_timestamp, self._clock.now())
            case rtvi.ClockQuestion(before=stamps):
                if stamps is not None:
                    self._timeline.stamped(stamps)
            case rtvi.Observed(observation=observation):
                self._timeline.observed(observation)
            case rtvi.SpeechEnded(at=at):
                self._timeline.speech_ended(at)
            case rtvi.PushToTalk(pressed=pressed):
                self._dialogue.pressed(pressed)
            case rtvi.Interrupt():
                self._dialogue.interrupted()
            case rtvi.DisconnectBot():
                self.hang_up()
            case BadMessageError():
                self._announcer.failed(str(message), code=message.code)
            case _:
                _log.debug("session %s: nothing to do for %s", self.session_id, type(message).__name__)

    def _read_text(self, text: str) -> None:
        limit = self._settings.max_text_chars
        if len(text) > limit:
            self._announcer.failed(
                f"The text has {len(text):,} characters; at most {limit:,} can be read at once.",
                code="text_too_long",
            )
        elif not text:
            self._announcer.failed("The text is empty.", code="text_empty")
        else:
            self._dialogue.typed(text)

    async def _until_over(self, peer: Peer) -> None:
        """Return when the connection ended or never came about, was hung up or restarted, or when
        nobody spoke for long."""
        reasons = (
            peer.closed.wait(),
            self._hang_up.wait(),
            self._restarted.wait(),
            self._never_connected(peer),
            self._nobody_speaks(),
        )
        watches = [self._scope.create_task(reason) for reason in reasons]
        await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
        for watch in watches:
            watch.cancel()

    async def _never_connected(self, peer: Peer) -> None:
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                await peer.connected.wait()
        except TimeoutError:
            _log.warning(
                "session %s: no connection within %g s", self.session_id, self._settings.connect_timeout
            )
            return
        await asyncio.get_running_loop().create_future()  # connected: this is no reason to end

    async def _nobody_speaks(self) -> None:
        while (deadline := self._dialogue.last_activity + self._settings.idle_timeout) > self._clock.now():
            await self._clock.sleep_until(deadline)
        _log.info("session %s: nobody spoke for %g s", self.session_id, self._settings.idle_timeout)
        self._announcer.failed(
            "The conversation was closed because nobody spoke for a while.", code="idle", fatal=True
        )
