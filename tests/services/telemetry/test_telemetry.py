"""What sessions tell reaches every exporter, harms no session, and says nothing of what people said."""

import asyncio
import json
import logging
import threading
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pipeline.clock import VirtualClock
from pipeline.timeline.loop_lag import LoopLag
from services import slo
from services.config import Config, load
from services.telemetry.broker import Message
from services.telemetry.identity import Identity
from services.telemetry.mqtt import Mqtt
from services.telemetry.prometheus import Prometheus
from services.telemetry.telemetry import Record, Telemetry, open_telemetry, published
from services.telemetry.traces import Traces
from tests.services.telemetry.turns import CANARY, GAP, a_turn


def prometheus() -> Prometheus:
    return Prometheus(LoopLag(VirtualClock()), slo.load(), 1)


class Recorder:
    name = "recorder"

    def __init__(self, fault: Exception | None = None) -> None:
        self.told: list[Any] = []
        self._fault = fault

    def _take(self, what: Any) -> None:
        if self._fault is not None:
            raise self._fault
        self.told.append(what)

    def session_began(self, session_id: str) -> None:
        self._take(("began", session_id))

    def turn(self, record: Record) -> None:
        self._take(record)

    def session_ended(self, session_id: str) -> None:
        self._take(("ended", session_id))


class Drawer:
    """Stands for a broker: keeps every message."""

    connected, dropped = True, 0

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def publish(self, message: Message) -> None:
        self.messages.append(message)

    retain = publish


def test_every_exporter_is_told_in_order() -> None:
    one, other = Recorder(), Recorder()
    telemetry = Telemetry(prometheus(), [one, other])
    telemetry.session_began("s")
    telemetry.turn(a_turn())
    telemetry.session_ended("s")
    assert one.told == other.told
    assert one.told[0] == ("began", "s")
    assert one.told[1]["turn_id"] == "turn-7"
    assert one.told[2] == ("ended", "s")


def test_a_fault_in_one_is_logged_and_counted_and_goes_no_further(caplog: pytest.LogCaptureFixture) -> None:
    numbers, other = prometheus(), Recorder()
    telemetry = Telemetry(numbers, [Recorder(KeyError("duration")), other])
    telemetry.turn(a_turn())
    assert len(other.told) == 1
    assert "recorder could not take what a session told" in caplog.text
    assert b'visavis_exporter_failures_total{exporter="recorder"} 1.0' in numbers.exposition("")[0]


def test_content_is_null_unless_it_is_wanted() -> None:
    record = a_turn()
    hidden = published(record, content=False)
    assert [hidden[name] for name in ("user_text", "reply_text", "heard_text")] == [None] * 3
    assert {name: value for name, value in hidden.items() if value is not None}.items() <= record.items()
    assert published(record, content=True) == record


def test_a_field_that_the_schema_does_not_know_stays_here() -> None:
    record = a_turn(thoughts=CANARY)
    assert "thoughts" not in published(record, content=True)


@pytest.mark.parametrize("content", [False, True])
def test_what_people_said_leaves_only_where_it_may(content: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    numbers, drawer, spans = prometheus(), Drawer(), InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    exporters = [
        Traces(provider.get_tracer("test"), None),
        Mqtt(drawer, Identity("lobby", "kiosk"), slo.load(), 1),  # type: ignore[arg-type]
    ]
    telemetry = Telemetry(numbers, exporters, content=content)
    telemetry.session_began("session-5")
    telemetry.turn(a_turn(speech_gaps=[GAP]))
    telemetry.session_ended("session-5")
    assert len(drawer.messages) == 4, "state, turn, alarm, state"
    sent = " ".join(f"{each.topic} {each.payload.decode()}" for each in drawer.messages)
    traced = " ".join(span.to_json() for span in spans.get_finished_spans())
    assert "turn-7" in sent
    assert "turn-7" in traced
    assert (CANARY in sent) is content
    assert (CANARY in traced) is content
    assert CANARY not in " ".join(each.topic for each in drawer.messages)
    assert CANARY.encode() not in numbers.exposition("")[0]
    assert CANARY not in caplog.text


def test_a_turn_reaches_the_topic_of_its_session() -> None:
    drawer = Drawer()
    mqtt = Mqtt(drawer, Identity("lobby", "kiosk"), slo.load(), 1)  # type: ignore[arg-type]
    mqtt.turn(published(a_turn(), content=False))
    (message,) = drawer.messages
    assert message.topic == "visavis/lobby/session/session-5/turn"
    assert json.loads(message.payload)["turn"]["time_to_first_audio_ms"] == 600


async def test_without_settings_nothing_is_started() -> None:
    before = threading.enumerate()
    async with open_telemetry(Config(), slo.load(), LoopLag(VirtualClock())) as telemetry:
        telemetry.session_began("s")
        telemetry.turn(a_turn())
        telemetry.session_ended("s")
        assert threading.enumerate() == before
        assert b"visavis_turns_total{" in telemetry.prometheus.exposition("")[0]


async def test_with_everything_away_a_session_notices_nothing_and_nothing_is_left() -> None:
    before, tasks = set(threading.enumerate()), asyncio.all_tasks()
    # Port 1 refuses: nothing listens there.
    settings = {"telemetry.otlp_endpoint": "http://127.0.0.1:1", "telemetry.mqtt.url": "mqtt://127.0.0.1:1"}
    async with open_telemetry(load(None, settings), slo.load(), LoopLag(VirtualClock())) as telemetry:
        telemetry.session_began("s")
        telemetry.turn(a_turn())
        telemetry.session_ended("s")
        assert b"visavis_mqtt_connected 0.0" in telemetry.prometheus.exposition("")[0]
        assert b"visavis_exporter_failures_total{" not in telemetry.prometheus.exposition("")[0]
    assert set(threading.enumerate()) <= before
    assert asyncio.all_tasks() == tasks
