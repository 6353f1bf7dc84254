"""A user's microphone as it arrives: from an RTP packet to sound in one step on the loop.

Decoding 20 ms of Opus takes 0.02 to 0.1 ms, less than the two hops to aiortc's decoder thread and back;
so the thread, which aiortc starts all the same, has nothing to do, and its two queues stay empty.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator

import numpy as np
from aiortc import RTCRtpReceiver
from aiortc.rtp import RtpPacket

from pipeline.clock import Clock
from pipeline.events import WIRE_RATE, Pcm
from pipeline.webrtc.tuning.internals import RECEIVE_BUFFER, RECEIVING, replace
from pipeline.webrtc.tuning.opus import OpusStream
from pipeline.webrtc.tuning.receive_buffer import Arrived, ReceiveBuffer, Released

_log = logging.getLogger(__name__)

MAX_WAITING = 2.0
"""Seconds of sound kept for whoever listens; of more, the oldest is dropped."""


class Uplink:
    """Stands in for the buffer of an aiortc receiver, whose `add` gets every packet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buffer = ReceiveBuffer()
        self._stream = OpusStream()
        self._waiting: deque[tuple[Pcm, float]] = deque()
        self._waiting_samples = 0
        self._news = asyncio.Event()
        self._ended = False
        self.dropped = 0
        """Samples that nobody listened to in time."""

    def add(self, packet: RtpPacket) -> tuple[bool, None]:
        """Called by aiortc: wants no key frame, and leaves it nothing to decode."""
        arrived = Arrived(
            packet.ssrc, packet.sequence_number, packet.timestamp, packet.payload, self._clock.now()
        )
        self._take(self._buffer.add(arrived))
        self._news.set()
        return False, None

    def end(self) -> None:
        """Nothing comes any more; `listen` returns."""
        if self._ended:
            return
        self._ended = True
        self._news.set()
        buffer, stream = self._buffer, self._stream
        if buffer.lost or stream.undecodable or self.dropped:
            _log.info(
                "microphone: %d packets lost, %d late, %d not Opus; %d ms made up, %d ms dropped unheard",
                *(buffer.lost, buffer.late, stream.undecodable),
                *(samples * 1000 // WIRE_RATE for samples in (stream.filled, self.dropped)),
            )

    async def listen(self, gap: float) -> AsyncGenerator[tuple[Pcm | None, float], None]:
        """Sound at WIRE_RATE and when its last sample arrived; None, once, when nothing came for `gap` s."""
        silent_at = self._clock.now() + gap
        while not self._ended:
            self._news.clear()
            now = self._clock.now()
            self._take(self._buffer.expire(now))
            while self._waiting:
                pcm, at = self._waiting.popleft()
                self._waiting_samples -= len(pcm)
                silent_at = self._clock.now() + gap
                yield pcm, at
            if now >= silent_at:
                silent_at = math.inf
                yield None, now
            await self._wait(min(silent_at, self._buffer.deadline or math.inf))

    async def _wait(self, until: float) -> None:
        try:
            async with asyncio.timeout(None if until == math.inf else max(0.0, until - self._clock.now())):
                await self._news.wait()
        except TimeoutError:
            pass

    def _take(self, released: list[Released]) -> None:
        if not released:
            return
        pcm = np.concatenate([self._stream.decode(each) for each in released])
        if not len(pcm):
            return
        self._waiting.append((pcm, released[-1].packet.at))
        self._waiting_samples += len(pcm)
        while self._waiting_samples > MAX_WAITING * WIRE_RATE:
            oldest, _ = self._waiting.popleft()
            self._waiting_samples -= len(oldest)
            self.dropped += len(oldest)


def tune_receiver(receiver: RTCRtpReceiver, clock: Clock) -> Uplink:
    """Take over what a receiver of Opus gets, before its first packet. Raises IncompatibleLibraryError."""
    uplink = Uplink(clock)
    replace(receiver, RECEIVE_BUFFER, uplink)
    return uplink


def ignore(receiver: RTCRtpReceiver) -> None:
    """Drop what a receiver gets: a track nobody reads is decoded and queued without end (aiortc issue 554).

    Raises IncompatibleLibraryError.
    """
    replace(receiver, RECEIVING, False)
