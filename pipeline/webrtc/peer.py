"""One WebRTC peer: negotiation, its microphone and data channel in, two tracks out."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCSessionDescription,
)
from aiortc.exceptions import InvalidStateError, OperationError
from aiortc.sdp import candidate_from_sdp

from pipeline.clock import Clock
from pipeline.errors import BadMessageError, BadOfferError
from pipeline.events import Pcm
from pipeline.webrtc import rtvi
from pipeline.webrtc.tuning.closing import close
from pipeline.webrtc.tuning.encoders import Bitrate, PromptSound, TimedEncoder, tune_sender
from pipeline.webrtc.tuning.internals import check_versions
from pipeline.webrtc.tuning.negotiation import prefer_codec
from pipeline.webrtc.tuning.outgoing import tell_sent
from pipeline.webrtc.tuning.uplink import Uplink, ignore, tune_receiver

_log = logging.getLogger(__name__)

_MALFORMED = (
    *(ValueError, IndexError, KeyError, AttributeError, AssertionError, TypeError),
    *(InvalidStateError, OperationError),
    RuntimeError,  # StopIteration in a coroutine: a line about a payload type that is not listed
)
"""What aiortc's SDP parser raises for text that is not SDP: it checks little on purpose."""

_FINGERPRINT = re.compile(r"^a=fingerprint:sha-(256|384|512) ", re.MULTILINE | re.IGNORECASE)
"""Without one there is no handshake, which aiortc only finds out once it is due."""

_WAITING_MESSAGES = 200
"""Messages kept for a channel that is not open yet, or waiting to be read; more are dropped."""


@dataclass(frozen=True, slots=True)
class IceServer:
    """A STUN or TURN server, as in the W3C's RTCIceServer."""

    urls: str | Sequence[str]
    username: str | None = None
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trickled ICE candidate, as browsers write it."""

    candidate: str
    sdp_mid: str | None
    sdp_mline_index: int | None


class Peer:
    """The server's end of one call. `answer` may be called again to renegotiate."""

    def __init__(
        self,
        clock: Clock,
        *,
        ice_servers: Sequence[IceServer] = (),
        video_codec: str = "VP8",
        bitrate: Bitrate | None = None,
        on_sent: Callable[[str, int], None] | None = None,
    ) -> None:
        """`on_sent` is told the kind and RTP time stamp of every packet that left."""
        check_versions()
        self._clock = clock
        self._tracks: dict[str, MediaStreamTrack] = {}
        self._sending: set[str] = set()
        """Kinds whose track the connection has."""
        self._encoders: dict[str, TimedEncoder] = {}
        self._video_codec = video_codec
        self._bitrate = bitrate or Bitrate()
        self._on_sent = on_sent
        servers = [
            RTCIceServer(list(_urls(server)), server.username, server.credential) for server in ice_servers
        ]
        # An empty list, not None: aiortc's default is a public STUN server.
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=servers))
        self._heard: RTCRtpReceiver | None = None
        self._microphone: asyncio.Future[Uplink] = asyncio.get_running_loop().create_future()
        self._channel: RTCDataChannel | None = None
        self._unsent: list[str] = []
        self._incoming: asyncio.Queue[rtvi.Incoming | BadMessageError] = asyncio.Queue(_WAITING_MESSAGES)
        self.connected = asyncio.Event()
        self.closed = asyncio.Event()
        self._connection.on("track", self._on_track)
        self._connection.on("datachannel", self._on_channel)
        self._connection.on("connectionstatechange", self._on_state)

    def add_tracks(self, *tracks: MediaStreamTrack) -> None:
        """What to send, at most one track of a kind; before the first `answer`."""
        self._tracks |= {track.kind: track for track in tracks}

    async def answer(self, sdp: str) -> RTCSessionDescription:
        """The answer to an offer. Raises BadOfferError."""
        if not sdp.startswith("v=0"):
            raise BadOfferError(f"the offer is not SDP: it begins {sdp[:20]!r}; expected 'v=0'")
        if not _FINGERPRINT.search(sdp):
            raise BadOfferError("the offer has no a=fingerprint of sha-256, sha-384 or sha-512")
        try:
            await self._connection.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
        except _MALFORMED as error:
            raise BadOfferError(f"the offer is not usable SDP: {error or type(error).__name__}") from error
        kinds = [transceiver.kind for transceiver in self._connection.getTransceivers()]
        if "audio" not in kinds:
            raise BadOfferError("the offer has no audio section; a conversation needs one")
        if "opus/48000" not in sdp.lower():
            raise BadOfferError("the offer has no Opus audio; nothing else is understood here")
        for kind, track in self._tracks.items():
            if kind in kinds and kind not in self._sending:
                self._sending.add(kind)
                self._connection.addTrack(PromptSound(track) if kind == "audio" else track)
        self._prefer_codecs()
        self._tune_senders()
        try:
            await self._connection.setLocalDescription(await self._connection.createAnswer())
        except _MALFORMED as error:
            raise BadOfferError(f"the offer cannot be answered: {error or type(error).__name__}") from error
        self._ignore_unread()  # now, because settling the directions switches receivers on
        return self._connection.localDescription

    async def add_candidate(self, trickled: Candidate) -> None:
        """A candidate the client found after its offer. Raises BadOfferError."""
        text = trickled.candidate.removeprefix("candidate:")
        if not text:
            return  # the end of candidates; aiortc needs no such sign
        try:
            candidate = candidate_from_sdp(text)
            candidate.sdpMid = trickled.sdp_mid
            candidate.sdpMLineIndex = trickled.sdp_mline_index
            await self._connection.addIceCandidate(candidate)
        except _MALFORMED as error:
            raise BadOfferError(f"not an ICE candidate: {trickled.candidate[:80]!r}") from error

    async def microphone(self, gap: float) -> AsyncGenerator[tuple[Pcm | None, float], None]:
        """Mono audio at WIRE_RATE and when its last sample arrived; None after `gap` s of nothing.

        Ends with the call; never begins when the client sends no audio.
        """
        uplink = await self._microphone
        async with aclosing(uplink.listen(gap)) as sound:
            async for pcm, at in sound:
                yield pcm, at

    async def messages(self) -> AsyncGenerator[rtvi.Incoming | BadMessageError, None]:
        """What arrives on the data channel, in order; a bad message comes as its error."""
        while True:
            yield await self._incoming.get()

    def send(self, text: str) -> None:
        """Send on the data channel; kept until there is one."""
        if self._channel is not None and self._channel.readyState == "open":
            self._channel.send(text)
        elif self._channel is None and len(self._unsent) < _WAITING_MESSAGES:
            self._unsent.append(text)

    def rtp_origin(self, kind: str) -> int | None:
        """What turns a track's pts, in units of its clock rate (audio 48,000 Hz, video 90,000), into the
        RTP time stamp it is sent with: (pts + origin) mod 2**32. None until a frame has been sent."""
        encoder = self._encoders.get(kind)
        return None if encoder is None else encoder.origin

    async def close(self) -> None:
        """Hang up. Nothing of the call survives."""
        await close(self._connection)
        for track in self._tracks.values():
            track.stop()
        self._microphone.cancel()
        self._end()

    def _prefer_codecs(self) -> None:
        for transceiver in self._connection.getTransceivers():
            if transceiver.kind == "audio":
                prefer_codec(transceiver, "audio/opus", only=True)
            else:
                # The others stay behind it, for a client that cannot do ours.
                prefer_codec(transceiver, f"video/{self._video_codec}")

    def _tune_senders(self) -> None:
        for transceiver in self._connection.getTransceivers():
            if transceiver.sender.track is not None:
                encoder = tune_sender(transceiver, self._bitrate)
                if encoder is not None:
                    self._encoders[transceiver.kind] = encoder
                    if self._on_sent is not None:
                        tell_sent(transceiver.sender, partial(self._on_sent, transceiver.kind))

    def _ignore_unread(self) -> None:
        for transceiver in self._connection.getTransceivers():
            if transceiver.receiver is not self._heard:
                ignore(transceiver.receiver)

    def _on_track(self, track: MediaStreamTrack) -> None:
        if track.kind == "audio" and self._heard is None:
            receivers = (transceiver.receiver for transceiver in self._connection.getTransceivers())
            self._heard = next(receiver for receiver in receivers if receiver.track is track)
            self._microphone.set_result(tune_receiver(self._heard, self._clock))

    def _on_channel(self, channel: RTCDataChannel) -> None:
        self._channel = channel
        channel.on("message", self._on_message)
        for text in self._unsent:
            channel.send(text)
        self._unsent.clear()

    def _on_message(self, text: str | bytes) -> None:
        received = self._clock.now()
        try:
            message: rtvi.Incoming | BadMessageError = rtvi.parse(text)
        except BadMessageError as error:
            message = error
        if isinstance(message, rtvi.Ping):
            return
        if isinstance(message, rtvi.ClockQuestion):
            # Before any other work: what waits here would count as being under way.
            self.send(rtvi.clock_answer(message.asked, received, self._clock.now()))
        if self._incoming.full():
            _log.warning("data channel: more than %d messages wait; one was dropped", _WAITING_MESSAGES)
        else:
            self._incoming.put_nowait(message)

    def _on_state(self) -> None:
        if self._connection.connectionState == "connected":
            self.connected.set()
        elif self._connection.connectionState in ("failed", "closed"):
            self._end()

    def _end(self) -> None:
        if self._microphone.done() and not self._microphone.cancelled():
            self._microphone.result().end()
        self.closed.set()


def _urls(server: IceServer) -> Sequence[str]:
    return [server.urls] if isinstance(server.urls, str) else server.urls
