"""Calls kept on tape for `visavis replay`, where `telemetry.recordings` asks for it."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from pipeline.clock import Clock, wall_time
from pipeline.stages import Stages
from pipeline.tape.entries import SCHEMA_VERSION, Header
from pipeline.tape.recorder import Recorder
from pipeline.tape.taped_peer import TapedPeer
from pipeline.tape.writer import writing
from pipeline.webrtc.peer import Peer
from services.config import Config
from services.config.faults import USER_INFO

_log = logging.getLogger(__name__)

SECTIONS = ("agent", "asr", "turn_taking", "llm", "tts", "render")
"""Of the settings, those that decide how a conversation goes."""


class Recordings:
    """A process's; its thread writes every tape."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="tape")

    @asynccontextmanager
    async def of(self, session_id: str, stages: Stages) -> AsyncIterator[tuple[Stages, Callable[..., Peer]]]:
        """What a session is to be made with, so that its call is kept, if calls are."""
        parent = self._config.telemetry.recordings
        if parent is None:
            yield stages, Peer
            return
        header = Header(
            schema_version=SCHEMA_VERSION,
            version=version("visavis"),
            session_id=session_id,
            date=wall_time(),
            started=self._clock.now(),
            turn_end=stages.turn_end is not None,
            settings=settings(self._config),
        )
        folder = parent / _name(header)
        _log.info("session %s is recorded in %s", session_id, folder)
        async with writing(folder, header, self._executor) as tape:
            recorder, fault = Recorder(tape, self._clock), None
            try:
                yield recorder.stages(stages), partial(TapedPeer, recorder)
            except Exception as error:
                fault = root_name(error)
                raise
            finally:
                recorder.ended(fault)

    def close(self) -> None:
        """No session is left."""
        self._executor.shutdown()


def settings(config: Config) -> Mapping[str, Any]:
    """What a tape says of the configuration."""
    sections = config.model_dump(mode="json", include=set(SECTIONS), exclude={"llm": {"openai": {"api_key"}}})
    openai = sections["llm"]["openai"]
    if openai["base_url"] is not None:
        openai["base_url"] = USER_INFO.sub("//", openai["base_url"])
    return sections


def root_name(error: BaseException) -> str:
    """The class of an error, or of the first in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__


def _name(header: Header) -> str:
    """Sorted by date; a colon is not for every file system."""
    return f"{header.date[:19].replace(':', '-')}-{header.session_id}"
