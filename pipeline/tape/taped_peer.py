"""A peer whose recorder hears everything that crosses the wire and that a conversation depends on."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from aiortc import MediaStreamTrack, RTCSessionDescription
from av import AudioFrame

from pipeline.clock import Clock
from pipeline.errors import BadMessageError
from pipeline.events import Pcm
from pipeline.tape.recorder import Recorder
from pipeline.webrtc import rtvi
from pipeline.webrtc.peer import Peer


class TapedPeer(Peer):
    """Made like a `Peer`, with its recorder before the rest."""

    def __init__(self, recorder: Recorder, clock: Clock, **settings: Any) -> None:
        super().__init__(clock, **settings)
        self._recorder = recorder
        self._answered = False

    def add_tracks(self, *tracks: MediaStreamTrack) -> None:
        super().add_tracks(
            *(_TapedVoice(track, self._recorder) if track.kind == "audio" else track for track in tracks)
        )

    async def answer(self, sdp: str) -> RTCSessionDescription:
        answer = await super().answer(sdp)
        if not self._answered:  # else the same connection is negotiated again
            self._answered = True
            self._recorder.answered(self)
        return answer

    async def microphone(self, gap: float) -> AsyncGenerator[tuple[Pcm | None, float], None]:
        async with aclosing(super().microphone(gap)) as sound:
            async for pcm, at in sound:
                self._recorder.sound(pcm, at)
                yield pcm, at

    async def messages(self) -> AsyncGenerator[rtvi.Incoming | BadMessageError, None]:
        async with aclosing(super().messages()) as messages:
            async for message in messages:
                self._recorder.message(message, self.rtp_origin("audio"))
                yield message

    def send(self, text: str) -> None:
        self._recorder.told(text)
        super().send(text)

    def _end(self) -> None:
        if not self.closed.is_set():
            self._recorder.closed(self)
        super()._end()


class _TapedVoice(MediaStreamTrack):
    """The voice, frame by frame as it goes out."""

    kind = "audio"

    def __init__(self, voice: MediaStreamTrack, recorder: Recorder) -> None:
        super().__init__()
        self._voice = voice
        self._recorder = recorder

    async def recv(self) -> AudioFrame:
        frame = await self._voice.recv()
        assert isinstance(frame, AudioFrame)
        assert frame.pts is not None
        self._recorder.frame(frame.pts)
        return frame

    def stop(self) -> None:
        super().stop()
        self._voice.stop()
