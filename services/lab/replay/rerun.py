"""Holds a recorded call again: the same session, in virtual time, with the tape in the wire's place."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pipeline.asr.ear import Ear
from pipeline.clock import MonotonicClock, VirtualClock
from pipeline.errors import VisavisError
from pipeline.session import Session
from pipeline.stages import Stages
from pipeline.tape.entries import Answered, Closed, Ended, Frame, Input, Message, Sound, Told
from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.session_timeline import SessionTimeline
from services import stage_settings
from services.config import Config
from services.lab.replay.answers import Answers, Missing
from services.lab.replay.stages import replayed
from services.lab.replay.tape import Tape
from services.lab.replay.wire import Wire, message
from services.recordings import root_name

_BEFORE = 60.0
"""Seconds before the call in which the agent's own lines are spoken."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """What became of the call."""

    told: Sequence[Told]
    missing: Sequence[Missing]
    fault: str | None
    """Name of the error that ended it."""


async def rerun(tape: Tape, config: Config, ear: Ear, live: Stages | None = None) -> Rerun:
    """`live`: real stages for what the tape holds no answer to."""
    clock = VirtualClock(tape.header.started - _BEFORE)
    answers, wire = Answers(tape, clock, MonotonicClock()), Wire(clock)
    with ThreadPoolExecutor(1, thread_name_prefix="render") as render:
        making = asyncio.create_task(
            replayed(config, ear, answers, clock, render, live, turn_end=tape.header.turn_end)
        )
        await clock.advance_to(tape.header.started)
        stages = await making
        session = Session(
            tape.header.session_id,
            stages,
            stage_settings.session(config),
            clock,
            SessionTimeline(clock, {}, LoopLag(clock), lambda record: None),
            wire.connect,
        )
        running = asyncio.create_task(session.run(), name="session")
        fault = None
        try:
            heard = 0
            for entry in tape.inputs:
                await clock.advance_to(entry.at)
                if running.done():
                    break
                if isinstance(entry, Sound):
                    count = entry.samples or 0
                    pcm = None if entry.samples is None else tape.microphone[heard : heard + count]
                    wire.peer.hear(pcm, entry.captured)
                    heard += count
                else:
                    await _feed(entry, session, wire)
            session.hang_up()
            await running
        except (ExceptionGroup, VisavisError) as error:
            fault = root_name(error)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    return Rerun(wire.told, answers.missing, fault)


async def _feed(entry: Input, session: Session, wire: Wire) -> None:
    match entry:
        case Answered() if wire.answered:
            await session.restart("")
        case Answered():
            wire.answered = True
        case Frame(index=index):
            await wire.peer.play(index)
        case Message(rtp_origin=origin):
            wire.peer.receive(message(entry), origin)
        case Closed() | Ended():
            session.hang_up()
