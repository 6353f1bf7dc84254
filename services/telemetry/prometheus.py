"""Numbers for Prometheus: seconds and counts over all sessions, without an id in any label."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from pipeline.timeline.loop_lag import LoopLag
from services.slo import Slo, breaks, judge

_WAIT = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_STAGE = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0)
_TOKEN = (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_STILL = (0.04, 0.08, 0.12, 0.2, 0.35, 0.5, 1.0, 2.0, 5.0)
_SKEW = (-0.5, -0.2, -0.12, -0.09, -0.06, -0.03, 0.0, 0.03, 0.06, 0.09, 0.12, 0.2, 0.5)
_TURN = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 30.0, 60.0)

_TIMES: Mapping[str, tuple[str, str, Sequence[float]]] = {
    "time_to_first_audio_ms": (
        "time_to_first_audio",
        "End of the user's speech to the first audible sample of the reply's own words, at the client.",
        _WAIT,
    ),
    "time_to_first_sound_ms": (
        "time_to_first_sound",
        "The same for anything audible, fillers and apologies included.",
        _WAIT,
    ),
    "time_to_first_frame_ms": (
        "time_to_first_frame",
        "End of the user's speech to the first presented picture of the reply with an open mouth.",
        _WAIT,
    ),
    "first_token_ms": (
        "first_token",
        "Request sent to the engine to its first piece of text.",
        _STAGE,
    ),
    "handoff_gap_ms": (
        "handoff_gap",
        "First token to second token, where prefill and decode are apart.",
        _STAGE,
    ),
    "queue_ms": (
        "queue",
        "Time that a request to the engine waited for a place.",
        _STAGE,
    ),
    "barge_in_stop_ms": (
        "barge_in_stop",
        "Onset of the user's voice to the last audible sample of the interrupted reply.",
        _STAGE,
    ),
    "total_ms": ("turn", "Beginning of a turn to the end of its reply.", _TURN),
}
"""Field of a record → the histogram of its seconds."""


class Connection(Protocol):
    """To an MQTT broker, as metrics see it."""

    connected: bool
    dropped: int
    """Messages that found no room while the broker was away."""


class Prometheus:
    """The exporter whose numbers are fetched; it has a registry of its own."""

    name = "prometheus"

    def __init__(self, loop_lag: LoopLag, slo: Slo, max_sessions: int) -> None:
        self._slo = slo
        self._registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        Info("visavis_build", "What is running.", registry=registry).info({"version": version("visavis")})

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"visavis_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"visavis_{name}", text, registry=registry)

        def histogram(name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"visavis_{name}_seconds", text, labels, registry=registry, buckets=buckets)

        self._times = {field: histogram(*instrument) for field, instrument in _TIMES.items()}
        self._stage = histogram("stage", "What each stage added to the wait for the reply.", _STAGE, "stage")
        self._gaps = histogram("speech_gap", "Silences in a reply that were not meant.", _STILL, "cause")
        self._freezes = histogram("render_freeze", "Pictures that froze, by the W3C's rule.", _STILL, "cause")
        self._stalls = histogram("render_stall", "Pictures that stood for 120 ms or more.", _STILL, "cause")
        self._skew = histogram("av_skew", "Sound later than picture, of each turn.", _SKEW, "statistic")
        self._token_gaps = histogram(
            "token_gap", "Between pieces of text, of each turn.", _TOKEN, "statistic"
        )
        self._turns = counter(
            "turns",
            "Turns that are over. outcome: answered, interrupted or failed; code: why it failed.",
            *("input", "outcome", "code"),
        )
        self._breaks = counter("slo_breaks", "Limits that turns broke, each by itself.", "limit")
        for verdict in judge(slo, []):
            self._breaks.labels(verdict.name)
        self._violations = counter("stage_violations", "Stages that contradict the client's end points.")
        self._cancels = counter("cancels", "Answers that were begun and dropped, or cut off by the user.")
        self._wasted_tokens = counter(
            "wasted_tokens", "Pieces of text written for answers that were dropped."
        )
        self._wasted_speech = counter("wasted_speech_seconds", "Speech synthesised for such answers.")
        self._prompt_tokens = counter(
            "prompt_tokens", "Tokens of prompts, by where they came from.", "source"
        )
        self._output_tokens = counter("output_tokens", "Tokens of replies.")
        self._failures = counter("exporter_failures", "Faults of exporters of telemetry.", "exporter")
        self._sessions = gauge("sessions", "Conversations now.")
        gauge("sessions_limit", "Conversations at most.").set(max_sessions)
        lag = gauge("loop_lag_seconds", "How late the event loop was at worst since this was last asked.")
        lag.set_function(loop_lag.take_worst)

    def watch(self, connection: Connection) -> None:
        """Tell about a connection to a broker, too."""
        self._registry.register(_Broker(connection))

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """What a scrape gets, by its Accept header, and the content type of it."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def exporter_failed(self, exporter: str) -> None:
        self._failures.labels(exporter).inc()

    def session_began(self, session_id: str) -> None:
        self._sessions.inc()

    def session_ended(self, session_id: str) -> None:
        self._sessions.dec()

    def turn(self, record: Mapping[str, Any]) -> None:
        code = record["failed"] or ""
        outcome = "failed" if code else "interrupted" if record["interrupted"] else "answered"
        self._turns.labels(record["input"], outcome, code).inc()
        for limit in breaks(self._slo, record):
            self._breaks.labels(limit).inc()
        for field, histogram in self._times.items():
            if record[field] is not None:
                histogram.observe(record[field] / 1000)
        for stage, share in record["stages"]["shares_ms"].items():
            if share is not None:
                self._stage.labels(stage).observe(share / 1000)
        self._observe_presentation(record)
        self._count_work(record)

    def _observe_presentation(self, record: Mapping[str, Any]) -> None:
        for gap in record["speech_gaps"] or ():
            self._gaps.labels(gap["cause"]).observe(gap["duration_ms"] / 1000)
        for still in record["render_freezes"] or ():
            kind = self._freezes if still["w3c"] else self._stalls
            kind.labels(still["cause"]).observe(still["duration_ms"] / 1000)
        for statistic in ("p50", "p95"):
            if record["av_skew_ms"] is not None:
                self._skew.labels(statistic).observe(record["av_skew_ms"][statistic] / 1000)
        self._violations.inc(len(record["stages_violated"] or ()))

    def _count_work(self, record: Mapping[str, Any]) -> None:
        for statistic in ("p50", "p99", "max"):
            if record["token_gaps_ms"] is not None:
                self._token_gaps.labels(statistic).observe(record["token_gaps_ms"][statistic] / 1000)
        self._cancels.inc(record["cancels"] or 0)
        wasted = record["wasted"] or {"tokens": 0, "speech_s": 0.0}
        self._wasted_tokens.inc(wasted["tokens"])
        self._wasted_speech.inc(wasted["speech_s"])
        for source, tokens in (record["kv_source"] or {}).items():
            self._prompt_tokens.labels(source).inc(tokens)
        self._output_tokens.inc(record["output_tokens"] or 0)


class _Broker(Collector):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "visavis_mqtt_connected", "Whether the broker is there.", float(self._connection.connected)
        )
        yield CounterMetricFamily(
            "visavis_mqtt_dropped",
            "Messages that found no room while the broker was away.",
            self._connection.dropped,
        )
