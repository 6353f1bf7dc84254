"""A call in virtual time from models to the client's ear and eye: all real but the models and the wire."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from pipeline.clock import VirtualClock
from pipeline.events import (
    ClientObservation,
    ClockStamps,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    Timeline,
    Utterance,
)
from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.session_timeline import SessionTimeline
from pipeline.webrtc.tracks import FaceTrack, VoiceTrack
from tests.pipeline.test_dialogue import Call, Models

ORIGIN = 4_294_900_000
"""Of both tracks' RTP time stamps, which soon begin anew at 0."""

LONGEST = 60.0
"""Seconds of a turn."""

STEP = 0.01
"""Seconds; only a fault of the loop's lets more pass at once."""


class BlockableClock(VirtualClock):
    def block(self, seconds: float) -> None:
        """The event loop stands still: time passes and nothing runs."""
        self._now += seconds


class Pencil(Executor):
    """Draws in virtual time."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._drawing: set[asyncio.Task[None]] = set()
        self.next_takes = 0.0
        """Seconds more that the next picture takes."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        drawn: Future[Any] = Future()
        task = asyncio.create_task(self._draw(drawn, function, args, self.next_takes))
        self.next_takes = 0.0
        self._drawing.add(task)
        task.add_done_callback(self._drawing.discard)
        return drawn

    async def _draw(
        self, drawn: Future[Any], function: Callable[..., Any], args: tuple[Any, ...], extra: float
    ) -> None:
        await self._clock.sleep_until(self._clock.now() + 0.002 + extra)
        drawn.set_result(function(*args))


class Wire:
    """From a track to the ear or the eye: seconds until a packet leaves, and until it is presented."""

    def __init__(self, leaves: float = 0.004, arrives: float = 0.09) -> None:
        self.leaves = leaves
        self.arrives = arrives
        self.dead = False
        """Nothing is presented any more."""


class ObservedCall:
    """What happens in it is up to the test; `records` are the timeline's."""

    def __init__(self, clock: BlockableClock, models: Models, scope: asyncio.TaskGroup) -> None:
        self.clock = clock
        self.lag = LoopLag(clock)
        self.records: list[Mapping[str, Any]] = []
        self.timeline = SessionTimeline(clock, {}, self.lag, self.records.append)
        self.timeline.connected(lambda kind: ORIGIN)
        self.pencil = Pencil(clock)
        observed: Timeline = self.timeline
        self.call = Call(clock, models, scope, self.pencil, None, None, observed)
        self.wires = {"audio": Wire(), "video": Wire()}
        self.hidden = False
        self._scope = scope
        self._tasks = [scope.create_task(self.lag.watch())]
        self._tie()
        self._present()

    @property
    def reply_began(self) -> float:
        """When the first sample of the present reply went out."""
        answer = self.call.dialogue.delivery.current
        assert answer is not None
        assert answer.trace.first_sound_at is not None
        return answer.trace.first_sound_at

    async def begun(self) -> float:
        """When the first sample of the reply under way goes out, or went."""
        answer = self.call.dialogue.delivery.current
        assert answer is not None
        await answer.reply.started.wait()
        return self.reply_began

    def say(self) -> None:
        """The user says something and has finished."""
        now = self.clock.now()
        self._tie()
        self.timeline.speech_ended(now)
        self.call.dialogue.heard(SpeechOnset(now - 1))
        self.call.dialogue.heard(SpeechPause(now, Utterance(np.zeros(100, np.float32), now - 1, now)))
        self.call.dialogue.heard(SpeechEnd(now))

    async def run(self, seconds: float) -> None:
        """Let time pass in steps, as it does."""
        end = self.clock.now() + seconds
        while self.clock.now() < end - 1e-9:
            await self.clock.advance(min(STEP, end - self.clock.now()))

    async def until_speaking(self, seconds: float) -> None:
        """Until so much of the reply was played."""
        until = self.clock.now() + LONGEST
        while (answer := self.call.dialogue.delivery.current) is None or answer.trace.first_sound_at is None:
            assert self.clock.now() < until, "no reply begins"
            await self.run(STEP)
        await self.run(max(0.0, self.reply_began + seconds - self.clock.now()))

    async def turn(self) -> Mapping[str, Any]:
        """Until the turn under way is over; its record."""
        before, until = len(self.records), self.clock.now() + LONGEST
        while len(self.records) == before:
            assert self.clock.now() < until, "no turn came to its end"
            await self.run(0.1)
        return self.records[-1]

    def close(self) -> None:
        self.call.dialogue.close()
        self.timeline.close()
        for task in self._tasks:
            task.cancel()

    def _tie(self) -> None:
        now = self.clock.now()
        self.timeline.stamped(ClockStamps(now, now, now, now))

    def _present(self) -> None:
        delivery, origin = self.call.dialogue.delivery, self.clock.now()
        playing = lambda: delivery.playing  # noqa: E731
        voice = VoiceTrack(self.clock, origin, delivery.playout, delivery.position, self.timeline, playing)
        face = FaceTrack(
            self.clock,
            origin,
            delivery.playout,
            self.call.portrait,
            self.call.portrait,
            self.call.dialogue.mood,
            self.pencil,
            self.timeline,
            playing,
        )
        self._tasks += [self._scope.create_task(self._send(track)) for track in (voice, face)]

    async def _send(self, track: VoiceTrack | FaceTrack) -> None:
        while True:
            frame = await track.recv()
            assert frame.pts is not None
            self._tasks.append(self._scope.create_task(self._deliver(track.kind, frame.pts)))

    async def _deliver(self, kind: str, pts: int) -> None:
        wire, stamp = self.wires[kind], (pts + ORIGIN) % 2**32
        await self.clock.sleep_until(self.clock.now() + wire.leaves)
        self.timeline.packet_sent(kind, stamp)
        presented = self.clock.now() + wire.arrives
        await self.clock.sleep_until(presented)
        if wire.dead:
            return
        moment = ((stamp, presented),)
        sound, pictures = (moment, ()) if kind == "audio" else ((), moment)
        self.timeline.observed(ClientObservation(sound, pictures, hidden=self.hidden))


@asynccontextmanager
async def observed_call(make: Callable[[BlockableClock], Models]) -> AsyncIterator[ObservedCall]:
    clock = BlockableClock(10.0)
    async with asyncio.TaskGroup() as scope:
        call = ObservedCall(clock, make(clock), scope)
        await call.run(1.5)  # pictures for the averages
        yield call
        call.close()
    assert len(asyncio.all_tasks()) == 1, "a task outlived the call"
