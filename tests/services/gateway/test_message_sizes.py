"""No message on the data channel is larger than 16 KB, whatever becomes of a call."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.timeline.record import empty_record
from pipeline.timeline.shortened import fitting
from pipeline.webrtc import rtvi
from services.lab.network.relay import Direction
from tests.scripted_call import ScriptedCall, scripted_call

_log = logging.getLogger(__name__)

LARGEST = 16 * 1024


def message(record: Mapping[str, Any]) -> str:
    return rtvi.server_message("visavis.measured", record=record)


def test_a_record_that_is_too_long_gives_up_what_is_least_missed() -> None:
    freeze = {"at_ms": 1.0, "duration_ms": 130.0, "cause": "network", "w3c": False}
    stages = {"speech_end_ms": 1.0, "shares_ms": {}, "spans": [{"stage": "asr"}] * 50}
    record = {**empty_record(), "stages": stages, "render_freezes": [freeze] * 400, "user_text": "語" * 2000}
    told = fitting(record)
    assert len(message(record).encode()) > LARGEST
    assert len(message(told).encode()) <= LARGEST
    assert (len(told["render_freezes"]), told["user_text"]) == (20, record["user_text"])
    assert told["stages"]["spans"] == []


def test_a_record_of_the_usual_size_is_told_as_it_is() -> None:
    record = {**empty_record(), "user_text": "語" * 2000}
    assert fitting(record) == record


class Channel:
    """Notes the sizes of what goes over a call's data channel."""

    def __init__(self, call: ScriptedCall) -> None:
        self.sizes: dict[str, list[int]] = {}
        channel = call.user._channel
        self._send = channel.send
        channel.send = self._noted  # type: ignore[method-assign]
        channel.on("message", self._note)

    def _noted(self, text: str) -> None:
        self._note(text)
        self._send(text)

    def _note(self, text: str) -> None:
        data = json.loads(text)["data"]
        kind = data.get("t") or data.get("type") or "other"
        self.sizes.setdefault(kind, []).append(len(text.encode()))


@pytest.mark.loopback
async def test_no_message_of_a_bad_call_is_too_long() -> None:
    async with scripted_call() as call:
        channel = Channel(call)
        call.say("語" * 2000)
        for word in ("very", "asking", "What"):
            await call.until_heard(word)
            call.relay.block(0.15, Direction.DOWN)
        record = await call.record()
    assert record["render_freezes"], "a call as bad as this one has some"
    largest = {kind: max(sizes) for kind, sizes in channel.sizes.items()}
    _log.info("largest messages, bytes: %s", largest)
    assert {"visavis.observed", "visavis.turn", "visavis.measured", "visavis.clock"} <= largest.keys()
    assert max(largest.values()) <= LARGEST
