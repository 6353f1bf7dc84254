"""Everything a process loads once and shares among its sessions, made from the configuration.

Threads, on two cores: one for recognition (ctranslate2 uses `asr.threads` of its own), one for the turn
detector, one for synthesis, one for drawing, one for ranking evidence (a picture must not wait for it),
two for encoding (the loop's default executor: aiortc encodes there), and the engine in a process of its
own. Voice activity runs on the loop (docs/decisions). What thinks steps back behind what is heard and
seen: when all sessions think at once, a reply under way still goes out in time.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import cv2
import onnxruntime

from pipeline.asr import voice_activity
from pipeline.asr.ear import Ear
from pipeline.asr.echo import EchoCanceller
from pipeline.asr.smart_turn import SmartTurn
from pipeline.asr.voice_activity import VoiceActivity
from pipeline.asr.whisper import WhisperTranscriber
from pipeline.clock import Clock
from pipeline.errors import ConfigError, MissingModelError
from pipeline.events import EvidenceSource, SpeechChunk, Synthesizer
from pipeline.headroom import Headroom
from pipeline.llm.budget import TokenBudget
from pipeline.llm.instructions import Instructions
from pipeline.llm.pool.llm_pool import LlmPool
from pipeline.llm.prompt import PromptBuilder
from pipeline.llm.prompt_writer import PromptWriter
from pipeline.llm.tokens import TokenCounter
from pipeline.render.drawn_face import DrawnFace
from pipeline.render.performance import Performance
from pipeline.session import SessionSettings
from pipeline.stages import Lines, Stages
from pipeline.timeline.loop_lag import LoopLag
from pipeline.tts.language import find_language
from pipeline.tts.pieces import whole
from pipeline.tts.piper import PiperSynthesizer, open_voice
from pipeline.tts.voice_files import find_voice, prepare_voice
from services import language_model, stage_settings
from services.config import Config
from services.config.tree import Agent
from services.priority import PICTURES, step_back

_log = logging.getLogger(__name__)

Progress = Callable[[str], None]
"""Told, in words, what is being done; for people who wait."""


@dataclass(slots=True)
class Stack:
    """What `open_stack` loaded. Every session gets its `stages` from here."""

    config: Config
    clock: Clock
    loop_lag: LoopLag
    session_settings: SessionSettings
    _vad: onnxruntime.InferenceSession
    _transcriber: WhisperTranscriber
    _synthesizer: PiperSynthesizer
    _face: DrawnFace
    _render: ThreadPoolExecutor
    _pool: LlmPool
    _engines: language_model.Engines
    _evidence: EvidenceSource | None
    _lines: Lines
    _turn_end: SmartTurn | None
    _headroom: Headroom
    _sessions: int = 0

    def trouble(self) -> str | None:
        """Why no session can start now, in plain words; None when one can."""
        return self._engines.trouble

    @property
    def route(self) -> Mapping[str, Any]:
        """How turns reach the language model, as they record it."""
        return self._engines.route

    @asynccontextmanager
    async def stages(self) -> AsyncIterator[Stages]:
        """One session's stages. Raises ServerFullError, LanguageModelError."""
        self._sessions += 1
        async with self._pool.conversation() as llm:
            yield Stages(
                ear=make_ear(self.config, self._vad),
                transcriber=self._transcriber,
                prompts=self._prompts(llm.counter),
                language_model=llm.language_model,
                synthesizer=self._synthesizer,
                performer=Performance(self.config.render.seed + self._sessions),
                face=self._face,
                render_executor=self._render,
                lines=self._lines,
                turn_end=self._turn_end,
                headroom=self._headroom,
                conduct=stage_settings.conduct(self.config),
                language=self.config.asr.language,
            )

    def _prompts(self, counter: TokenCounter) -> PromptWriter:
        config = self.config
        evidence = config.llm.evidence
        budget = TokenBudget(
            context=config.llm.context_tokens,
            max_output=config.llm.sampling.max_output_tokens,
            history=config.llm.history_tokens,
            evidence=evidence.max_tokens if evidence.enabled else 0,
        )
        examples = tuple((each.user, each.agent) for each in config.agent.examples)
        builder = PromptBuilder(counter, budget, Instructions(config.agent.instructions, examples))
        return PromptWriter(builder, self._evidence, tenant=evidence.tenant, role=evidence.role)

    async def check(self) -> None:
        """Raises ConfigError when instructions, evidence and history do not fit the context."""
        async with self._pool.conversation() as llm:
            await self._prompts(llm.counter).opening()


def make_ear(config: Config, vad: onnxruntime.InferenceSession) -> Ear:
    """One session's; `vad` may be shared."""
    turn_taking = config.turn_taking
    return Ear(
        VoiceActivity(vad),
        stage_settings.endpointing(config),
        pre_roll=turn_taking.vad.pre_roll_ms / 1000,
        progress=turn_taking.speculation.partials_ms / 1000 or None,
        echo=EchoCanceller(),
    )


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


@asynccontextmanager
async def open_stack(config: Config, clock: Clock, progress: Progress) -> AsyncIterator[Stack]:
    """Load everything; on leaving, nothing is left running.

    Raises ConfigError, MissingModelError, EngineError. The first start on a machine prepares the
    models in the cache folder, which takes some seconds and says so.
    """
    cache = config.server.cache_folder
    _check_language(config)
    cv2.setNumThreads(1)  # one drawing thread is all there is; OpenCV would start one for each core
    async with AsyncExitStack() as scope:
        asr, turns, tts, ranking = (
            scope.enter_context(ThreadPoolExecutor(1, thread_name_prefix=name, initializer=step_back))
            for name in ("asr", "turns", "tts", "evidence")
        )
        render, encode = (
            scope.enter_context(
                ThreadPoolExecutor(
                    count, thread_name_prefix=name, initializer=step_back, initargs=(PICTURES,)
                )
            )
            for name, count in (("render", 1), ("encode", 2))
        )
        loop = asyncio.get_running_loop()
        loop.set_default_executor(encode)
        # The engine loads in its own process while the rest loads here.
        starting = asyncio.create_task(language_model.start(config, cache, clock, progress, scope))
        try:
            progress("loading speech recognition")
            transcriber = await loop.run_in_executor(
                asr, WhisperTranscriber, stage_settings.whisper(config), asr
            )
            progress("loading the voice")
            voice = await loop.run_in_executor(
                tts, lambda: open_voice(prepare_voice(find_voice(config.tts.voice), cache))
            )
            headroom = Headroom()
            synthesizer = PiperSynthesizer(voice, tts, stage_settings.piper(config), lambda: headroom.free)
            progress("drawing the face")
            face = await loop.run_in_executor(render, DrawnFace, config.render.size)
            vad = voice_activity.load_model()
            await asyncio.gather(transcriber.warm(), synthesizer.warm())
            lines = await spoken_lines(config.agent, synthesizer)
            turn_end = await loop.run_in_executor(turns, _smart_turn, config, turns)
            evidence = await _open_evidence(config, ranking)
        except BaseException:
            starting.cancel()
            await asyncio.wait([starting])
            raise
        engines = await starting
        await engines.check()
        evidence_of_turns = language_model.keep_evidence(config, engines, scope)
        pool = await scope.enter_async_context(
            language_model.open_pool(config, clock, engines, evidence_of_turns)
        )
        loop_lag = LoopLag(clock)
        watching = asyncio.create_task(loop_lag.watch(), name="loop lag")
        scope.push_async_callback(_cancelled, watching)
        stack = Stack(
            config=config,
            clock=clock,
            loop_lag=loop_lag,
            session_settings=stage_settings.session(config),
            _vad=vad,
            _transcriber=transcriber,
            _synthesizer=synthesizer,
            _face=face,
            _render=render,
            _pool=pool,
            _engines=engines,
            _evidence=evidence,
            _lines=lines,
            _turn_end=turn_end,
            _headroom=headroom,
        )
        await stack.check()
        yield stack


async def spoken_lines(agent: Agent, synthesizer: Synthesizer) -> Lines:
    """What the agent says of its own accord, spoken now so that it can be said when nothing else works."""

    async def spoken(text: str) -> SpeechChunk | None:
        return await whole(synthesizer.stream(text)) if text else None

    return Lines(
        apology=await whole(synthesizer.stream(agent.apology)),
        not_understood=await spoken(agent.not_understood),
        greeting=await spoken(agent.greeting),
        filler=await spoken(agent.filler),
    )


def _smart_turn(config: Config, executor: ThreadPoolExecutor) -> SmartTurn | None:
    """The turn detector, None when it is switched off or not installed: silence and words decide then."""
    if not config.turn_taking.smart_turn:
        return None
    try:
        return SmartTurn(executor)
    except MissingModelError as error:
        _log.warning("ends of turns are judged without their sound: %s", error)
        return None


def _check_language(config: Config) -> None:
    try:
        find_language(config.asr.language)  # replies are cut into clauses by its rules
    except ConfigError as error:
        raise ConfigError(f"asr.language: {error}") from error


async def _open_evidence(config: Config, executor: ThreadPoolExecutor) -> EvidenceSource | None:
    evidence = config.llm.evidence
    if not evidence.enabled or evidence.folder is None:
        return None
    from pipeline.llm.evidence import FolderEvidence  # pulls in scipy's weight; most servers need none

    return await FolderEvidence.open(evidence.folder, executor, top_k=evidence.top_k)
