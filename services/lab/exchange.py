"""One utterance and what became of it, as its caller saw it."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipeline.clock import Clock
from services.lab import measures
from services.lab.arrivals import Heard
from services.lab.microphone import Utterance
from services.lab.studio.speech import Spoken
from services.lab.synthetic_user import CallError, SyntheticUser, Told

NO_REPLY = 12.0
"""Seconds after the end of an utterance after which an agent that is idle will not answer it."""

LONGEST_REPLY = 90.0

SETTLED = 0.5
"""Seconds for which nobody may have begun anything before an exchange counts as over."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """`records` are the server's, of every turn that it made of the utterance, in order."""

    spoken: Spoken
    utterance: Utterance
    records: Sequence[Mapping[str, Any]]
    answered: bool
    """The last record came after the utterance's end, of a reply that nothing cut short."""
    began: float | None = None
    """When, by the server, the speech of the turn that answered began, on the caller's clock: true where
    both run on one machine."""
    heard: Sequence[Heard] = ()
    """From before the utterance on."""


async def ask(user: SyntheticUser, spoken: Spoken, clock: Clock) -> Exchange:
    """Say something and wait until the agent has answered and fallen silent. Raises CallError.

    What was heard before is forgotten: a call of half an hour would not fit into memory.
    """
    heard = user.sound.heard = []
    since = len(user.told)
    utterance = user.say(spoken.file)
    await user.finish(utterance)
    answered = await until_answered(user, utterance, since)
    await until_settled(user, clock)
    records: Sequence[Mapping[str, Any]] = [
        told.data["record"] for told in user.told[since:] if told.type == "visavis.turn"
    ]
    # Whoever loses the call now has had the answer; the next question finds out.
    with contextlib.suppress(CallError):
        await measures.until_measured(user, records)
    records = measures.with_server_timeline(records, user.told[since:])
    began = None
    if records and records[-1]["started_at"] is not None:
        wall = datetime.now(UTC).timestamp() - clock.now()
        began = datetime.fromisoformat(records[-1]["started_at"]).timestamp() - wall
    return Exchange(spoken, utterance, records, answered, began, heard)


async def until_answered(user: SyntheticUser, utterance: Utterance, since: int) -> bool:
    """Wait for the end of the reply to what was said; False when none begins, or it never ends."""
    assert utterance.end is not None
    speech_end = utterance.end

    def over(told: Told) -> bool:
        return told.type == "visavis.turn" and told.at > speech_end and not told.data["record"]["interrupted"]

    for seconds in (NO_REPLY, LONGEST_REPLY):
        try:
            async with asyncio.timeout(seconds):
                await user.until(over, since=since)
        except TimeoutError:
            if is_idle(user):
                return False
        else:
            return True
    return False


async def until_settled(user: SyntheticUser, clock: Clock) -> None:
    """Wait until the agent has said everything and starts nothing new. Raises CallError."""
    while True:
        if not is_idle(user):
            newest = max(index for index, told in enumerate(user.told) if told.type == "visavis.state")
            try:
                async with asyncio.timeout(LONGEST_REPLY):
                    await user.until(_idle, since=newest)
            except TimeoutError as error:
                raise CallError(f"the agent was still not done after {LONGEST_REPLY:g} s") from error
        before = len(user.told)
        await clock.sleep_until(clock.now() + SETTLED)
        if not any(told.type == "visavis.state" for told in user.told[before:]):
            return


def is_idle(user: SyntheticUser) -> bool:
    """Whether the newest state says that nobody speaks and nothing is being prepared."""
    for told in reversed(user.told):
        if told.type == "visavis.state":
            return _idle(told)
    return True


def joined(exchange: Exchange, *, own: bool, now: float) -> dict[str, Any]:
    """The record of the turn that answered, with the caller's own times; `own`: nothing was cut off."""
    name = exchange.spoken.file.path.name
    if not exchange.answered:
        return measures.unanswered(name, exchange.utterance, now)
    return measures.joined(exchange.records[-1], name, exchange.utterance, exchange.heard, own=own)


def _idle(told: Told) -> bool:
    state = told.type == "visavis.state"
    return state and told.data["agent"] == "idle" and told.data.get("user", "silent") == "silent"
