"""One OpenTelemetry trace for each turn, its stages as spans, sent to a collector by OTLP over HTTP.

A turn is over when it is told, so its spans are made with the times that they had. Attributes follow the
GenAI semantic conventions where these have one; the others begin with `visavis.`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from importlib.metadata import version
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from pipeline.events import Stage
from pipeline.timeline.turn_record import CONTENT
from services.telemetry.identity import Identity

_QUEUED = 2048
"""Spans that wait to be sent, those of some 200 turns; more are dropped."""

_EVERY_MS = 5000.0
_BATCH = 256
_ANSWER = 5.0
"""Seconds that the collector has, repeated attempts included; after that a batch is dropped."""

_LAST_WORDS = 3.0
"""Seconds for what is still to be sent when the server ends."""


class Traces:
    """The exporter. `model`: as the engine calls it, None when nobody said."""

    name = "opentelemetry"

    def __init__(self, tracer: Tracer, model: str | None) -> None:
        self._tracer = tracer
        self._model = model

    def session_began(self, session_id: str) -> None:
        """Spans are of turns only."""

    def session_ended(self, session_id: str) -> None:
        """Spans are of turns only."""

    def turn(self, record: Mapping[str, Any]) -> None:
        times = _Times(record)
        root = self._tracer.start_span(
            "turn",
            # Of its own: whatever the caller is doing now is no part of it.
            context=Context(),
            start_time=times.start,
            attributes=dict(_turn_attributes(record)),
        )
        inside = set_span_in_context(root, Context())
        for span in record["stages"]["spans"]:
            share = record["stages"]["shares_ms"][span["stage"]]
            attributes = {"visavis.revision": span["revision"], "visavis.share_ms": share}
            self._tracer.start_span(
                span["stage"],
                context=inside,
                start_time=times.from_speech_end(span["start_ms"]),
                attributes=_known(attributes),
            ).end(times.from_speech_end(span["end_ms"]))
        self._add_chat(record, times, inside)
        _add_disturbances(root, record, times)
        if record["failed"] is not None:
            root.set_status(Status(StatusCode.ERROR, record["failed"]))
        root.end(times.end)

    def _add_chat(self, record: Mapping[str, Any], times: "_Times", inside: Context) -> None:
        """The request to the language model, from its sending to its last token."""
        prefill = [span for span in record["stages"]["spans"] if span["stage"] == Stage.PREFILL]
        if not prefill:
            return
        sent, waited = prefill[-1]["start_ms"], record["first_token_ms"]
        first_token = prefill[-1]["end_ms"] if waited is None else sent + waited
        tokens, rate = record["output_tokens"], record["output_tokens_per_s"]
        writing = (tokens - 1) / rate * 1000 if tokens and rate else 0.0
        self._tracer.start_span(
            "chat" if self._model is None else f"chat {self._model}",
            context=inside,
            kind=SpanKind.CLIENT,
            start_time=times.from_speech_end(sent),
            attributes=_known(_chat_attributes(record, self._model)),
        ).end(times.from_speech_end(first_token + writing))


class _Times:
    """A record's milliseconds as wall time, in nanoseconds since 1970."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.start = round(datetime.fromisoformat(record["started_at"]).timestamp() * 1000) * 1_000_000
        stages = record["stages"]
        self._speech_end = self.start + _nanoseconds(stages["speech_end_ms"] or 0.0)
        ends = [self.from_speech_end(span["end_ms"]) for span in stages["spans"]]
        self.end = max([self.start + _nanoseconds(record["total_ms"] or 0.0), *ends])
        sent = [span["end_ms"] for span in stages["spans"] if span["stage"] == Stage.EGRESS]
        firsts = record["time_to_first_audio_ms"], record["time_to_first_sound_ms"], *sent[-1:]
        first = next((ms for ms in firsts if ms is not None), None)
        self._first_audible = self.start if first is None else self.from_speech_end(first)

    def from_speech_end(self, ms: float) -> int:
        return self._speech_end + _nanoseconds(ms)

    def from_first_audible(self, ms: float) -> int:
        return self._first_audible + _nanoseconds(ms)


def _nanoseconds(ms: float) -> int:
    return round(ms * 1_000_000)


def _turn_attributes(record: Mapping[str, Any]) -> Iterator[tuple[str, str | bool | float]]:
    yield "gen_ai.conversation.id", record["session_id"]
    if record["failed"] is not None:
        yield "error.type", record["failed"]
    for name, value in record.items():
        if isinstance(value, str | bool | int | float) and name not in ("session_id", *CONTENT):
            yield f"visavis.{name}", value
    for statistic, value in (record["av_skew_ms"] or {}).items():
        yield f"visavis.av_skew_ms.{statistic}", value


def _chat_attributes(record: Mapping[str, Any], model: str | None) -> Mapping[str, Any]:
    route, source, first_token = record["route"] or {}, record["kv_source"] or {}, record["first_token_ms"]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": route.get("dialect"),
        "gen_ai.conversation.id": record["session_id"],
        "gen_ai.request.model": model,
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": record["prompt_tokens"],
        "gen_ai.usage.cache_read.input_tokens": source.get("prefix"),
        "gen_ai.usage.output_tokens": record["output_tokens"],
        "gen_ai.response.time_to_first_chunk": None if first_token is None else first_token / 1000,
        "gen_ai.input.messages": _messages("user", record["user_text"]),
        "gen_ai.output.messages": _messages("assistant", record["reply_text"]),
        "visavis.heard_text": record["heard_text"],
    }


def _messages(role: str, text: str | None) -> str | None:
    """As the conventions write them; None where there is no text, or none that may be sent."""
    return text and json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _add_disturbances(root: Span, record: Mapping[str, Any], times: _Times) -> None:
    for gap in record["speech_gaps"] or ():
        _add(root, "visavis.speech_gap", gap, times.from_first_audible(gap["at_ms"]))
    for still in record["render_freezes"] or ():
        name = "visavis.render_freeze" if still["w3c"] else "visavis.render_stall"
        _add(root, name, still, times.from_first_audible(still["at_ms"]))


def _add(root: Span, name: str, disturbance: Mapping[str, Any], at: int) -> None:
    attributes = {"visavis.duration_ms": disturbance["duration_ms"], "visavis.cause": disturbance["cause"]}
    root.add_event(name, attributes, at)


@asynccontextmanager
async def open_traces(endpoint: str, identity: Identity, model: str | None) -> AsyncIterator[Traces]:
    """Sends to a collector, `endpoint` as in http://host:4318; on leaving, its thread is over."""
    exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=_ANSWER)
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource.create(
            {
                "service.name": "visavis",
                "service.namespace": identity.site,
                "service.instance.id": identity.node,
                "service.version": version("visavis"),
            }
        ),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(
        BatchSpanProcessor(
            exporter,
            max_queue_size=_QUEUED,
            schedule_delay_millis=_EVERY_MS,
            max_export_batch_size=_BATCH,
        )
    )
    try:
        yield Traces(provider.get_tracer("visavis", version("visavis")), model)
    finally:
        await _shut_down(provider, exporter)


async def _shut_down(provider: TracerProvider, exporter: OTLPSpanExporter) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="traces") as executor:
        closing = loop.run_in_executor(executor, provider.shutdown)
        _, late = await asyncio.wait([closing], timeout=_LAST_WORDS)
        if late:
            # Which gives up its attempts; what could not be sent by now is lost.
            exporter.shutdown()  # type: ignore[no-untyped-call]
        await closing
