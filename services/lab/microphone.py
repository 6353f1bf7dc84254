"""A synthetic user's microphone: a continuous track that is silent until it is given something to say."""

import asyncio
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

from pipeline.clock import Clock
from pipeline.events import WIRE_RATE
from services.lab.speech_file import SpeechFile

_FRAME = WIRE_RATE // 50


@dataclass(slots=True)
class Utterance:
    """Something being said, and when its first and last voiced sample were."""

    file: SpeechFile
    done: asyncio.Event
    position: int = 0
    onset: float | None = None
    end: float | None = None
    """The user speech end, on the caller's clock."""


class Microphone(MediaStreamTrack):
    """20 ms frames, handed over, as by a sound card, when their last sample has been captured."""

    kind = "audio"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._origin: float | None = None
        self._index = 0
        self._utterance: Utterance | None = None
        self.late = 0.0
        """Seconds by which a frame was late since somebody began to speak: more than a few tens of ms, and
        the caller's machine was too busy for its measurements."""
        # A real microphone is never digitally silent; -80 dBFS of noise keeps the VAD honest.
        self._noise = (np.random.default_rng(1).standard_normal(WIRE_RATE) * 3.3).astype(np.int16)

    def say(self, file: SpeechFile) -> Utterance:
        """Begin to speak at the next frame."""
        self._utterance = Utterance(file, asyncio.Event())
        self.late = 0.0
        return self._utterance

    async def recv(self) -> AudioFrame:
        if self.readyState != "live":
            raise MediaStreamError
        if self._origin is None:
            self._origin = self._clock.now()
        due = self._origin + (self._index + 1) * _FRAME / WIRE_RATE
        await self._clock.sleep_until(due)
        self.late = max(self.late, self._clock.now() - due)
        start = (self._index * _FRAME) % (WIRE_RATE - _FRAME)
        pcm = self._noise[start : start + _FRAME].copy()
        if self._utterance is not None:
            self._speak(self._utterance, pcm)
        frame = AudioFrame.from_ndarray(pcm[None], format="s16", layout="mono")
        frame.sample_rate = WIRE_RATE
        frame.pts = self._index * _FRAME
        frame.time_base = Fraction(1, WIRE_RATE)
        self._index += 1
        return frame

    def _speak(self, utterance: Utterance, pcm: np.ndarray) -> None:
        begin = utterance.position
        piece = utterance.file.pcm[begin : begin + _FRAME]
        pcm[: len(piece)] = np.clip(pcm[: len(piece)].astype(np.int32) + piece, -32768, 32767)
        utterance.position += _FRAME
        captured = self._clock.now() - _FRAME / WIRE_RATE
        voiced = utterance.file.voiced
        if begin <= voiced.start < utterance.position:
            utterance.onset = captured + (voiced.start - begin) / WIRE_RATE
        if begin < voiced.end <= utterance.position:
            utterance.end = captured + (voiced.end - begin) / WIRE_RATE
        if utterance.position >= len(utterance.file.pcm):
            self._utterance = None
            utterance.done.set()
