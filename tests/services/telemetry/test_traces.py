"""A turn as a trace: spans at the times that they had, and what a collector really gets."""

import threading
from collections.abc import Iterator
from datetime import datetime

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_tracer_provider

from services.telemetry.identity import Identity
from services.telemetry.telemetry import published
from services.telemetry.traces import Traces, open_traces
from tests.services.telemetry.collector import Collector
from tests.services.telemetry.turns import CANARY, FREEZE, GAP, STALL, a_turn


def traced(record: dict[str, object], model: str | None = None) -> dict[str, ReadableSpan]:
    """The spans of one turn, by name."""
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    Traces(provider.get_tracer("test"), model).turn(record)
    return {span.name: span for span in spans.get_finished_spans()}


def after(record: dict[str, object], at: int | None) -> float:
    """Seconds from the turn's beginning."""
    assert at is not None
    return at / 1e9 - datetime.fromisoformat(str(record["started_at"])).timestamp()


def test_one_trace_with_the_stages_as_children_at_their_own_times() -> None:
    record = a_turn()
    spans = traced(record)
    root = spans.pop("turn")
    assert root.parent is None
    assert {span.context.trace_id for span in spans.values()} == {root.context.trace_id}
    assert {span.parent.span_id for span in spans.values() if span.parent} == {root.context.span_id}
    assert set(spans) == {
        *("endpointing", "asr", "prefill", "first_clause", "tts", "egress", "playout", "chat")
    }
    assert after(record, root.start_time) == pytest.approx(0, abs=1e-3)
    assert after(record, root.end_time) == pytest.approx(3.5, abs=1e-3)
    assert after(record, spans["prefill"].start_time) == pytest.approx(2.2, abs=1e-3)
    assert after(record, spans["prefill"].end_time) == pytest.approx(2.3, abs=1e-3)
    assert spans["prefill"].attributes == {"visavis.revision": 1, "visavis.share_ms": pytest.approx(100)}
    assert after(record, spans["playout"].end_time) == pytest.approx(2.6, abs=1e-3)


def test_the_request_to_the_model_by_genais_conventions() -> None:
    record = a_turn()
    chat = traced(published(record, content=False), "m-1")["chat m-1"]  # type: ignore[arg-type]
    assert chat.kind is SpanKind.CLIENT
    assert after(record, chat.start_time) == pytest.approx(2.2, abs=1e-3)
    assert after(record, chat.end_time) == pytest.approx(2.4, abs=1e-3), "six tokens, 20 ms apart"
    assert dict(chat.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "llama_cpp",
        "gen_ai.conversation.id": "session-5",
        "gen_ai.request.model": "m-1",
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 80,
        "gen_ai.usage.output_tokens": 6,
        "gen_ai.response.time_to_first_chunk": pytest.approx(0.1),
    }


def test_the_turn_carries_its_numbers() -> None:
    attributes = traced(a_turn())["turn"].attributes or {}
    assert attributes["gen_ai.conversation.id"] == "session-5"
    assert attributes["visavis.turn_id"] == "turn-7"
    assert attributes["visavis.time_to_first_audio_ms"] == pytest.approx(600)
    assert attributes["visavis.av_skew_ms.p50"] == pytest.approx(0, abs=1)
    assert "error.type" not in attributes
    assert not [name for name in attributes if name.endswith("_text")]


def test_gaps_freezes_and_stalls_are_events_when_they_were() -> None:
    record = a_turn(speech_gaps=[GAP], render_freezes=[FREEZE, STALL])
    events = {event.name: event for event in traced(record)["turn"].events}
    gap, freeze = events["visavis.speech_gap"], events["visavis.render_freeze"]
    assert after(record, gap.timestamp) == pytest.approx(2.6 + 0.4, abs=1e-3), "as it was heard"
    assert after(record, freeze.timestamp) == pytest.approx(2.6 + 0.5, abs=1e-3), "from the same moment"
    assert gap.attributes == {"visavis.duration_ms": 200, "visavis.cause": "tts"}
    assert "visavis.render_stall" in events


def test_a_failed_turn_is_an_error_and_needs_no_stages() -> None:
    nothing = {"speech_end_ms": None, "shares_ms": {}, "spans": []}
    spans = traced(a_turn(failed="asr_failed", stages=nothing, total_ms=None, route=None, av_skew_ms=None))
    (root,) = spans.values()
    assert root.status.status_code is StatusCode.ERROR
    assert (root.attributes or {})["error.type"] == "asr_failed"


def test_content_is_in_the_conventions_own_attributes() -> None:
    chat = traced(a_turn())["chat"].attributes or {}
    assert CANARY in str(chat["gen_ai.input.messages"])
    assert '"role": "assistant"' in str(chat["gen_ai.output.messages"])


# ── to a collector ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def batching() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("Otel", "traces"))]


async def test_a_collector_gets_the_spans_and_no_thread_is_left(collector: Collector) -> None:
    async with open_traces(collector.url, Identity("lobby", "kiosk"), None) as traces:
        traces.turn(a_turn())
        assert batching() != []
    assert batching() == []
    ((path, request),) = collector.requests
    assert path == "/v1/traces"
    (resource,) = request.resource_spans
    about = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert about["service.name"] == "visavis"
    assert (about["service.namespace"], about["service.instance.id"]) == ("lobby", "kiosk")
    assert len(resource.scope_spans[0].spans) == 9


async def test_a_collector_that_is_busy_is_given_up_in_the_end(collector: Collector) -> None:
    collector.status = 503
    async with open_traces(collector.url, Identity("lobby", "kiosk"), None) as traces:
        traces.turn(a_turn())
    assert collector.requests != []
    assert batching() == []


async def test_nothing_global_is_set(collector: Collector) -> None:
    before = get_tracer_provider()
    async with open_traces(collector.url, Identity("lobby", "kiosk"), None):
        assert get_tracer_provider() is before
        assert not isinstance(before, TracerProvider)
