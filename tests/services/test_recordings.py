"""When calls are recorded, and what of the configuration goes with them."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import VirtualClock
from pipeline.stages import Lines, Stages
from pipeline.webrtc.peer import Peer
from services.config import Config
from services.recordings import Recordings, settings
from tests.pipeline.test_dialogue import Models, Portrait, SilentEar, speech
from tests.services.lab.replay.calls import only


def stages() -> Stages:
    models, portrait = Models(VirtualClock()), Portrait()
    return Stages(
        ear=SilentEar(),
        transcriber=models,
        prompts=models,
        language_model=models,
        synthesizer=models.voice,
        performer=portrait,
        face=portrait,
        render_executor=ThreadPoolExecutor(1),
        lines=Lines(speech("Sorry.")),
    )


def test_nothing_is_recorded_unless_it_is_asked_for() -> None:
    assert Config().telemetry.recordings is None


async def test_without_a_folder_a_session_is_made_as_ever() -> None:
    plain, recordings = stages(), Recordings(Config(), VirtualClock())
    async with recordings.of("s1", plain) as (same, connect):
        assert same is plain
        assert connect is Peer
    recordings.close()


def test_no_secret_and_no_address_with_a_password_is_kept() -> None:
    config = Config(
        llm={
            "kind": "openai",
            "openai": {"base_url": "http://me:secret@host/v1", "model": "m", "api_key": "hidden"},
        }
    )
    text = json.dumps(settings(config))
    assert "secret" not in text
    assert "hidden" not in text
    assert "server" not in settings(config), "what it does not depend on"
    Config(**settings(config))


@pytest.mark.parametrize("fault", [None, ValueError("a bug"), ExceptionGroup("", [KeyError("a bug")])])
async def test_how_a_call_ended_is_on_the_tape(tmp_path: Path, fault: Exception | None) -> None:
    recordings = Recordings(Config(telemetry={"recordings": tmp_path}), VirtualClock())

    async def call() -> None:
        async with recordings.of("s1", stages()):
            if fault is not None:
                raise fault

    await asyncio.gather(call(), return_exceptions=True)
    recordings.close()
    folder = only(tmp_path)
    assert folder.name.endswith("-s1")
    last: dict[str, Any] = json.loads((folder / "tape.jsonl").read_text().splitlines()[-1])
    named = {None: None, ValueError: "ValueError", ExceptionGroup: "KeyError"}
    assert (last["kind"], last["fault"]) == ("ended", named[None if fault is None else type(fault)])
