"""The stages of a replayed call: a real ear, and the rest as the tape tells or as real ones do."""

from collections.abc import AsyncGenerator
from concurrent.futures import Executor

from pipeline.asr.ear import Ear
from pipeline.clock import VirtualClock
from pipeline.events import LanguageModel, Prompt, TextDelta
from pipeline.render.drawn_face import DrawnFace
from pipeline.render.performance import Performance
from pipeline.stages import Stages
from pipeline.tape import stages as taped
from services import stage_settings
from services.config import Config
from services.lab.replay.answers import Answers
from services.stack import spoken_lines

_SIDE = 64
"""Pixels of the face that nobody draws."""


async def replayed(
    config: Config,
    ear: Ear,
    answers: Answers,
    clock: VirtualClock,
    render: Executor,
    live: Stages | None,
    *,
    turn_end: bool,
) -> Stages:
    """`live`: real stages for what the tape holds no answer to, None where there are none; `turn_end`: the
    call had a turn detector."""
    detector = None if live is None else live.turn_end
    model = None if live is None else _WarmedAtOnce(live.language_model, clock)
    synthesizer = taped.TapedSynthesizer(answers, None if live is None else live.synthesizer)
    return Stages(
        ear=ear,
        transcriber=taped.TapedTranscriber(answers, None if live is None else live.transcriber),
        prompts=taped.TapedPrompts(answers, None if live is None else live.prompts),
        language_model=taped.TapedLanguageModel(answers, model, clock),
        synthesizer=synthesizer,
        performer=Performance(config.render.seed),
        face=DrawnFace(_SIDE),
        render_executor=render,
        lines=await spoken_lines(config.agent, synthesizer),
        turn_end=(
            taped.TapedTurnEnd(answers, detector)
            if config.turn_taking.smart_turn and (turn_end or detector is not None)
            else None
        ),
        headroom=taped.TapedHeadroom(answers, None),
        conduct=stage_settings.conduct(config),
        language=config.asr.language,
    )


class _WarmedAtOnce:
    """A language model that reads ahead in no time, as the one of the call did while nobody waited."""

    def __init__(self, model: LanguageModel, clock: VirtualClock) -> None:
        self._model = model
        self._clock = clock

    def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        return self._model.stream(prompt)

    async def warm(self, prompt: Prompt) -> None:
        with self._clock.standing_still():
            await self._model.warm(prompt)

    async def read(self, prompt: Prompt) -> float | None:
        return await self._model.read(prompt)
