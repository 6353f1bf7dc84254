"""Calls for a tape, held in virtual time: everything real but the models and the wire."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.asr.ear import Ear
from pipeline.asr.echo import EchoCanceller
from pipeline.asr.voice_activity import VoiceActivity
from pipeline.clock import VirtualClock
from pipeline.events import HEARING_RATE, WIRE_RATE, Message, Pcm, Prompt, Samples, Transcript
from pipeline.session import Session
from pipeline.stages import Lines, Stages
from pipeline.tape.taped_peer import TapedPeer
from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.session_timeline import SessionTimeline
from pipeline.webrtc import rtvi
from pipeline.webrtc.playout import FRAME, FRAME_SECONDS
from services import stage_settings
from services.config import Config
from services.lab.replay.wire import ReplayedPeer, Wire
from services.recordings import Recordings
from tests.pipeline.test_dialogue import Models, Portrait, speech

WORDS = "please tell me something about the weather in paris and then about the sea".split()  # noqa: SIM905

START = 1000.0

LOSE_CONNECTION = object()


def settings(recordings: Path | None = None, **turn_taking: Any) -> Config:
    return Config(
        agent={"greeting": "Welcome.", "apology": "Sorry about that.", "not_understood": ""},
        turn_taking={"smart_turn": False, **turn_taking},
        telemetry={"recordings": recordings},
    )


class Loudness(VoiceActivity):
    """Takes whatever is loud for speech."""

    def __init__(self) -> None:
        pass

    def reset(self) -> None:
        pass

    def probability(self, window: Samples) -> float:
        return 1.0 if float(np.abs(window).max()) > 0.05 else 0.0


class Hearers(Models):
    """Models that hear a word in each 0.3 s of speech, and see to it that no two prompts are alike."""

    async def transcribe(self, samples: Samples) -> Transcript:
        await self.clock.sleep_until(self.clock.now() + 0.1)
        loudest = np.abs(samples[: len(samples) // 160 * 160].reshape(-1, 160)).max(axis=1)
        loud = int((loudest > 0.05).sum()) * 160 / HEARING_RATE
        return Transcript(" ".join(WORDS[: max(1, round(loud / 0.3))]).capitalize() + ".")

    async def write(self, history: Sequence[Message], turn: str) -> Prompt:
        await self.clock.sleep_until(self.clock.now() + 0.004)
        said = repr([(message.role, message.text) for message in history]) + turn
        return Prompt((*history,), (), hashlib.sha256(said.encode()).hexdigest(), 80)


class ScriptedPeer(TapedPeer, ReplayedPeer):
    """A taped peer without a connection. Its voice goes out as it does on a wire: in real time."""

    async def send_voice(self) -> None:
        while True:
            await self._tracks["audio"].recv()


def ear(config: Config) -> Ear:
    partials = config.turn_taking.speculation.partials_ms
    return Ear(
        Loudness(),
        stage_settings.endpointing(config),
        progress=partials / 1000 or None,
        echo=EchoCanceller(),
    )


def microphone(seconds: float, spoken: Sequence[tuple[float, float]]) -> Pcm:
    """Noise in syllables wherever somebody speaks: from when to when."""
    times = np.arange(round(seconds * WIRE_RATE)) / WIRE_RATE
    noise = np.random.default_rng(5).standard_normal(len(times))
    voice = np.clip(noise * 4000 * (1 + 0.5 * np.sin(2 * np.pi * 4 * times)), -20000, 20000)
    loud = np.zeros(len(times), bool)
    for start, end in spoken:
        loud |= (times >= start) & (times < end)
    return np.where(loud, voice, 0).astype(np.int16)


async def recorded(
    folder: Path,
    seconds: float,
    spoken: Sequence[tuple[float, float]],
    events: Mapping[float, Any] | None = None,
    *,
    config: Config | None = None,
    models: type[Hearers] = Hearers,
) -> Path:
    """Hold a call; the folder of its recording. `events`: messages by when they come."""
    config = config or settings(folder)
    clock = VirtualClock(START)
    sound = microphone(seconds, spoken)
    waiting = sorted((events or {}).items())
    taping = Recordings(config, clock)
    with ThreadPoolExecutor(1) as executor:
        plain = _stages(config, clock, models(clock), executor)
        async with taping.of("s1", plain) as (stages, connect):
            (recorder,) = connect.args
            wire = Wire(clock, partial(ScriptedPeer, recorder))
            timeline = SessionTimeline(clock, {}, LoopLag(clock), lambda record: None)
            session = Session("s1", stages, stage_settings.session(config), clock, timeline, wire.connect)
            await session.peer.answer("v=0")
            voices = [asyncio.create_task(wire.peer.send_voice())]
            running = asyncio.create_task(session.run())
            wire.peer.receive(rtvi.ClientReady("1", "2.1.0"), None)
            for index in range(len(sound) // FRAME):
                # As on a real way, packets come a little late now and then.
                at = START + (index + 1) * FRAME_SECONDS + (index * 7 % 5) * 0.001
                await clock.advance_to(at)
                while waiting and START + waiting[0][0] <= at:
                    _, event = waiting.pop(0)
                    if event is LOSE_CONNECTION:
                        await session.restart("v=0")
                        voices.append(asyncio.create_task(wire.peer.send_voice()))
                    else:
                        wire.peer.receive(event, None)
                wire.peer.hear(sound[index * FRAME : (index + 1) * FRAME], at)
            await clock.advance_to(clock.now())
            await session.peer.close()
            await running
            for voice in voices:
                voice.cancel()
            await asyncio.gather(*voices, return_exceptions=True)
    taping.close()
    return only(folder)


def only(folder: Path) -> Path:
    """The one recording in it."""
    (kept,) = folder.iterdir()
    return kept


def _stages(config: Config, clock: VirtualClock, models: Hearers, executor: ThreadPoolExecutor) -> Stages:
    portrait, agent = Portrait(), config.agent
    return Stages(
        ear=ear(config),
        transcriber=models,
        prompts=models,
        language_model=models,
        synthesizer=models.voice,
        performer=portrait,
        face=portrait,
        render_executor=executor,
        lines=Lines(apology=speech(agent.apology), greeting=speech(agent.greeting)),
        conduct=stage_settings.conduct(config),
    )
