"""A user of a soak without a browser: an aiortc peer that asks, listens, and calls again when it must."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from services.lab import cut, exchange, measures
from services.lab.exchange import Exchange
from services.lab.soak import lines
from services.lab.soak.findings import Plan, Record
from services.lab.studio.speech import Spoken
from services.lab.synthetic_user import CallError, SyntheticUser, calling

SHORTEST_PAUSE, LONGEST_PAUSE = 0.3, 4.0
"""Seconds between an answer and the next question, and before a call that has to be made again."""


class SyntheticCaller:
    """User number `number`, who says `said` in an order of its own."""

    def __init__(self, number: int, plan: Plan, said: Sequence[Spoken]) -> None:
        self._number = number
        self._plan = plan
        self._rng = plan.rng(number)
        self._said = lines.shuffled(said, self._rng)
        self._call = AsyncExitStack()
        self._user: SyntheticUser | None = None

    async def run(self) -> None:
        """Take every turn; one that could not be taken is a failed one, never a missing one."""
        clock = self._plan.clock
        try:
            for _ in self._plan.rounds():
                await clock.sleep_until(clock.now() + self._rng.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))
                spoken = next(self._said)
                try:
                    await self._ask(await self._connected(), spoken)
                except CallError as error:
                    self._keep(failed(spoken, error), spoken, clock.now(), str(error))
                    await self._hang_up()
        finally:
            await self._hang_up()

    async def _connected(self) -> SyntheticUser:
        if self._user is None:
            relay = await self._call.enter_async_context(self._plan.relay(self._rng))
            user = calling(self._plan.url, self._plan.clock, way=relay)
            self._user = await self._call.enter_async_context(user)
            await exchange.until_settled(self._user, self._plan.clock)
        elif self._user.over.is_set():
            raise CallError("the call was lost between two turns")
        return self._user

    async def _hang_up(self) -> None:
        self._user = None
        await self._call.aclose()

    async def _ask(self, user: SyntheticUser, spoken: Spoken) -> None:
        _forget(user)
        try:
            done = await exchange.ask(user, spoken, self._plan.clock)
        except CallError:
            unheard = measures.unheard(spoken.file.path.name)
            for told in user.told:
                if told.type == "visavis.turn":
                    self._keep({**unheard, **told.data["record"], "premature": True}, spoken, told.at)
            raise
        assert done.utterance.end is not None
        # Off the loop, on which every user's packets are stamped.
        records = await asyncio.to_thread(self._records, done, user)
        for record in records:
            self._keep(record, spoken, done.utterance.end)

    def _records(self, done: Exchange, user: SyntheticUser) -> list[dict[str, Any]]:
        """One for each turn that the server made of what was said, and one more when none answers it."""
        late = {"microphone_late_ms": round(user.microphone.late * 1000, 1)}
        name = done.spoken.file.path.name
        earlier = done.records[:-1] if done.answered else done.records
        records = [measures.joined(turn, name, done.utterance, done.heard, own=False) for turn in earlier]
        whole = not cut.reasons(done, done.heard)
        records.append(exchange.joined(done, own=whole, now=self._plan.clock.now()))
        return [{**record, **late} for record in records]

    def _keep(self, record: Record, spoken: Spoken, at: float, error: str | None = None) -> None:
        self._plan.keep(self._plan.marked(record, user=self._number, at=at, said=spoken.text, error=error))


def failed(spoken: Spoken, error: CallError) -> dict[str, Any]:
    """The record of a turn that could not be taken."""
    return {**measures.unheard(spoken.file.path.name), "failed": error.code}


def _forget(user: SyntheticUser) -> None:
    """All messages but the newest state, which says whether the agent speaks: a call of hours grows."""
    user.told[:] = [told for told in user.told if told.type == "visavis.state"][-1:]
    user.pictures.seen.clear()
