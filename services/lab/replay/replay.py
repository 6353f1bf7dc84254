"""`visavis replay`: hold a recorded call again and say whether it goes as it did."""

import math
from contextlib import AsyncExitStack
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from pipeline.asr import voice_activity
from pipeline.clock import MonotonicClock
from pipeline.errors import ConfigError
from pipeline.stages import Stages
from pipeline.tape.entries import Ended
from services import recordings
from services.config import Config, load
from services.lab.replay import report, tape
from services.lab.replay.course import course
from services.lab.replay.rerun import Rerun, rerun
from services.lab.replay.tape import Tape
from services.stack import make_ear, open_stack


async def run(folder: Path, config_file: Path | None, *, models: bool) -> int:
    """Returns 0 when the replay decides as the call did, 1 when it does not.

    With the settings of the call, or those of `config_file`. `models`: what the tape holds no answer to is
    asked of real ones. Raises BadTapeError, ConfigError, MissingModelError, and what `open_stack` raises.
    """
    console = Console(markup=False, highlight=False, emoji=False)
    recorded = tape.load(folder)
    config = _settings(recorded, folder) if config_file is None else load(config_file)
    _introduce(console, recorded, config, models=models)
    replayed = await _replayed(recorded, config, models=models)
    began, end = recorded.header.started, recorded.inputs[-1]
    fault = end.fault if isinstance(end, Ended) else None
    until = end.at if recorded.whole else math.nextafter(end.at, began)
    same = report.show(
        console,
        course(recorded.told, began, until=until, fault=fault),
        course(replayed.told, began, until=until, fault=replayed.fault),
        replayed.missing,
        began,
    )
    return 0 if same else 1


async def _replayed(recorded: Tape, config: Config, *, models: bool) -> Rerun:
    errors = Console(stderr=True, highlight=False)
    ear = make_ear(config, voice_activity.load_model())
    async with AsyncExitStack() as scope:
        live: Stages | None = None
        if models:
            stack = await scope.enter_async_context(
                open_stack(config, MonotonicClock(), lambda text: errors.print(f"… {text}", markup=False))
            )
            live = await scope.enter_async_context(stack.stages())
        with errors.status("Holding the call again …"):
            return await rerun(recorded, config, ear, live)


def _settings(recorded: Tape, folder: Path) -> Config:
    """Those of the call."""
    try:
        return Config(**recorded.header.settings)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{folder}: the call's setting {key} does not hold here ({first['msg']}); "
            "give settings that do with --config"
        ) from None


def _introduce(console: Console, recorded: Tape, config: Config, *, models: bool) -> None:
    header = recorded.header
    seconds = recorded.inputs[-1].at - header.started
    console.print(f"call of {header.date}, {seconds:.1f} s, by Visavis {header.version}")
    if not recorded.whole:
        console.print("The recording broke off; what came after is not compared.")
    for change in report.changes(header.settings, recordings.settings(config)):
        console.print(f"changed: {change}")
        if not models and change.split(".")[0] in ("asr", "llm", "tts"):
            console.print("  What models say is on the tape and does not change without --models.")
