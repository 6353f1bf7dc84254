"""Where the wire was: what came over it in the call comes again, and what is told the client is kept."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any

from aiortc import RTCSessionDescription

from pipeline.clock import Clock
from pipeline.errors import BadMessageError
from pipeline.events import Pcm
from pipeline.tape import recorder
from pipeline.tape.entries import Message, Told
from pipeline.webrtc import rtvi
from pipeline.webrtc.peer import Peer
from pipeline.webrtc.tracks import VoiceTrack

_MESSAGES = {message.__name__: message for message in recorder.MESSAGES}


class ReplayedPeer(Peer):
    """A peer without a connection, fed by whoever replays. `tell` gets what the client is sent."""

    def __init__(self, clock: Clock, *, tell: Callable[[str], None], **settings: Any) -> None:
        super().__init__(clock, **settings)
        self._tell = tell
        self._sound: asyncio.Queue[tuple[Pcm | None, float]] = asyncio.Queue()
        self._rtp_origin: int | None = None
        self.connected.set()

    def hear(self, pcm: Pcm | None, captured: float) -> None:
        """The microphone brings something, or nothing for a while."""
        self._sound.put_nowait((pcm, captured))

    def receive(self, message: rtvi.Incoming | BadMessageError, rtp_origin: int | None) -> None:
        self._rtp_origin = rtp_origin
        self._incoming.put_nowait(message)

    async def play(self, index: int) -> None:
        """A frame of the voice goes out."""
        voice = self._tracks["audio"]
        assert isinstance(voice, VoiceTrack)
        await voice.frame(index)

    async def answer(self, sdp: str) -> RTCSessionDescription:
        return RTCSessionDescription(sdp, "answer")

    async def microphone(self, gap: float) -> AsyncGenerator[tuple[Pcm | None, float], None]:
        while True:
            yield await self._sound.get()

    def send(self, text: str) -> None:
        self._tell(text)

    def rtp_origin(self, kind: str) -> int | None:
        return self._rtp_origin


class Wire:
    """One call's, over all its connections."""

    def __init__(self, clock: Clock, make: Callable[..., ReplayedPeer] = ReplayedPeer) -> None:
        self.told: list[Told] = []
        self.answered = False
        """The call has begun; another answer is to an offer of another connection."""
        self._clock = clock
        self._make = partial(make, tell=self._tell)
        self._peers: list[ReplayedPeer] = []

    @property
    def peer(self) -> ReplayedPeer:
        """The newest."""
        return self._peers[-1]

    def connect(self, clock: Clock, **settings: Any) -> Peer:
        """A session's next peer."""
        self._peers.append(self._make(clock, **settings))
        return self.peer

    def _tell(self, text: str) -> None:
        self.told.append(Told(self._clock.now(), text))


def message(entry: Message) -> rtvi.Incoming:
    """As the client sent it."""
    made: rtvi.Incoming = _MESSAGES[entry.name](**entry.fields)
    return made
