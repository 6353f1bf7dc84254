"""A synthetic user in a call with the scripted server, through a relay, and what it heard and saw itself."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pipeline.clock import MonotonicClock
from pipeline.events import WIRE_RATE
from pipeline.timeline.render_freezes import STALL
from services.lab.arrivals import Heard
from services.lab.heard_sound import HeardSound
from services.lab.network.profiles import Profile
from services.lab.network.relay import Relay
from services.lab.synthetic_user import SyntheticUser, Told, calling
from tests.scripted_server import ScriptedServer, scripted_server

_AHEAD = 500.0

_LONGEST = 60.0
"""Seconds of a call; one that hangs is a failed test."""


class ClockElsewhere(MonotonicClock):
    """Another machine's: it shows another time."""

    def now(self) -> float:
        return super().now() + _AHEAD

    async def sleep_until(self, deadline: float) -> None:
        await super().sleep_until(deadline - _AHEAD)


@dataclass(frozen=True)
class Hole:
    """Milliseconds; `at`: from the reply's first audible sample."""

    at: float
    duration: float


class ScriptedCall:
    """Made by `scripted_call`. `usual` is the record of a turn in which nothing went wrong."""

    usual: Mapping[str, Any]

    def __init__(self, server: ScriptedServer, relay: Relay, user: SyntheticUser) -> None:
        self.server = server
        self.relay = relay
        self.user = user
        self.clock = ClockElsewhere()
        self._since = 0
        self._asked = 0.0

    def say(self, text: str = "How are you?") -> None:
        self._since, self._asked = len(self.user.told), self.clock.now()
        self.user.type(text)

    async def until_heard(self, word: str) -> None:
        """Until a word of the reply sets in."""
        await self._told("bot-tts-text", lambda data: data["text"] == word)

    async def record(self) -> Mapping[str, Any]:
        """Of this turn, when it is over and the client's reports on it are in."""
        told = await self._told("visavis.measured", lambda data: True)
        return told.data["record"]

    async def turn(self) -> Mapping[str, Any]:
        self.say()
        return await self.record()

    async def _told(self, kind: str, wanted: Any) -> Told:
        return await self.user.until(lambda told: told.type == kind and wanted(told.data), since=self._since)

    # ── what this client can tell without the server ───────────────────────────────────────────

    @property
    def first_audio(self) -> float:
        """From the question to the arrival of the first audible sample, ms."""
        sound = self._sound()
        return (sound.arrival(sound.runs()[0].start) - self._asked) * 1000

    def silences(self) -> list[Hole]:
        """Of 40 ms or more in the reply's waveform."""
        runs = self._sound().runs()
        holes = [
            Hole((a.end - runs[0].start) * 1000 / WIRE_RATE, (b.start - a.end) * 1000 / WIRE_RATE)
            for a, b in pairwise(runs)
        ]
        return [hole for hole in holes if hole.duration >= 40]

    def longest_wait(self) -> Hole:
        """The longest one for a packet of the reply's sound."""
        sound, heard = self._sound(), self._heard()
        began = sound.arrival(sound.runs()[0].start)
        waits = [Hole((a.at + 0.02 - began) * 1000, (b.at - a.at) * 1000) for a, b in pairwise(heard)]
        return max(waits, key=lambda wait: wait.duration)

    def stills(self) -> list[float]:
        """The times between two pictures, from before the question on, where they were long; ms."""
        seen = [at for at, _ in self.user.pictures.seen if at >= self._asked - 1.5]
        return [(b - a) * 1000 for a, b in pairwise(seen) if b - a >= STALL - 0.01]

    def longest_drawing(self) -> float:
        """The longest time between two pictures that the server had drawn since the question, ms."""
        asked = self._asked - _AHEAD
        drawn = [at for at in self.server.script.drawn if at >= asked]
        return max(later - earlier for earlier, later in pairwise(drawn)) * 1000

    def _heard(self) -> list[Heard]:
        return [packet for packet in self.user.sound.heard if packet.at >= self._asked]

    def _sound(self) -> HeardSound:
        heard = self._heard()
        return HeardSound(heard, self._asked, heard[-1].at + 0.02)


@asynccontextmanager
async def scripted_call(profile: Profile | None = None) -> AsyncIterator[ScriptedCall]:
    """A call in which one turn has gone well: clocks are tied, and there are pictures for averages."""
    clock = ClockElsewhere()
    async with (
        asyncio.timeout(_LONGEST),
        scripted_server() as server,
        Relay(profile or Profile(), clock) as relay,
        calling(server.url, clock, way=relay) as user,
    ):
        call = ScriptedCall(server, relay, user)
        call.usual = await call.turn()
        yield call
