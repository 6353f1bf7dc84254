"""What a scrape reads after turns of known times."""

from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from pipeline.clock import VirtualClock
from pipeline.timeline.loop_lag import LoopLag
from services import slo
from services.telemetry.prometheus import Prometheus
from tests.services.telemetry.turns import FREEZE, GAP, STALL, a_turn


@pytest.fixture
def lag() -> LoopLag:
    return LoopLag(VirtualClock())


@pytest.fixture
def prometheus(lag: LoopLag) -> Prometheus:
    return Prometheus(lag, slo.load(), max_sessions=4)


def samples(prometheus: Prometheus) -> list[Sample]:
    text = prometheus.exposition("")[0].decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def value(prometheus: Prometheus, name: str, **labels: str) -> float | None:
    found = [each.value for each in samples(prometheus) if each.name == name and each.labels == labels]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("time_to_first_audio_ms", "visavis_time_to_first_audio_seconds"),
        ("time_to_first_sound_ms", "visavis_time_to_first_sound_seconds"),
        ("time_to_first_frame_ms", "visavis_time_to_first_frame_seconds"),
        ("first_token_ms", "visavis_first_token_seconds"),
        ("handoff_gap_ms", "visavis_handoff_gap_seconds"),
        ("queue_ms", "visavis_queue_seconds"),
        ("barge_in_stop_ms", "visavis_barge_in_stop_seconds"),
        ("total_ms", "visavis_turn_seconds"),
    ],
)
def test_milliseconds_of_a_record_are_seconds_and_null_is_nothing(
    prometheus: Prometheus, field: str, name: str
) -> None:
    prometheus.turn(a_turn(**{field: 640.0}))
    prometheus.turn(a_turn(**{field: None}))
    assert value(prometheus, f"{name}_sum") == pytest.approx(0.64)
    assert value(prometheus, f"{name}_count") == 1


def test_stages_are_told_by_name(prometheus: Prometheus) -> None:
    prometheus.turn(a_turn())
    assert value(prometheus, "visavis_stage_seconds_sum", stage="endpointing") == pytest.approx(0.2)
    assert value(prometheus, "visavis_stage_seconds_sum", stage="playout") == pytest.approx(0.1)
    assert value(prometheus, "visavis_stage_seconds_count", stage="handoff") is None


def test_gaps_freezes_and_stalls_are_told_by_cause(prometheus: Prometheus) -> None:
    prometheus.turn(a_turn(speech_gaps=[GAP, GAP], render_freezes=[FREEZE, STALL]))
    prometheus.turn(a_turn(speech_gaps=None, render_freezes=None))
    assert value(prometheus, "visavis_speech_gap_seconds_count", cause="tts") == 2
    assert value(prometheus, "visavis_speech_gap_seconds_sum", cause="tts") == pytest.approx(0.4)
    assert value(prometheus, "visavis_render_freeze_seconds_sum", cause="render") == pytest.approx(0.44)
    assert value(prometheus, "visavis_render_stall_seconds_sum", cause="encode") == pytest.approx(0.13)


def test_skew_may_be_negative(prometheus: Prometheus) -> None:
    prometheus.turn(a_turn(av_skew_ms={"p50": -70.0, "p95": 10.0, "max_abs": 80.0}))
    bucket = "visavis_av_skew_seconds_bucket"
    assert value(prometheus, bucket, statistic="p50", le="-0.09") == 0
    assert value(prometheus, bucket, statistic="p50", le="-0.06") == 1
    assert value(prometheus, bucket, statistic="p95", le="0.0") == 0
    assert value(prometheus, bucket, statistic="p95", le="0.03") == 1


def test_token_gaps_tokens_and_what_was_prepared_in_vain(prometheus: Prometheus) -> None:
    prometheus.turn(a_turn())
    assert value(prometheus, "visavis_token_gap_seconds_sum", statistic="max") == pytest.approx(0.02)
    assert value(prometheus, "visavis_prompt_tokens_total", source="prefix") == 80
    assert value(prometheus, "visavis_prompt_tokens_total", source="computed") == 20
    assert value(prometheus, "visavis_output_tokens_total") == 6
    assert value(prometheus, "visavis_cancels_total") == 1
    assert value(prometheus, "visavis_wasted_tokens_total") == 7
    assert value(prometheus, "visavis_wasted_speech_seconds_total") == 1.5


@pytest.mark.parametrize(
    ("fields", "outcome", "code"),
    [
        ({}, "answered", ""),
        ({"interrupted": True}, "interrupted", ""),
        ({"failed": "llm_failed", "interrupted": True}, "failed", "llm_failed"),
    ],
)
def test_turns_by_outcome(prometheus: Prometheus, fields: dict[str, Any], outcome: str, code: str) -> None:
    prometheus.turn(a_turn(**fields))
    assert value(prometheus, "visavis_turns_total", input="voice", outcome=outcome, code=code) == 1


def test_limits_broken_are_counted_from_0(prometheus: Prometheus) -> None:
    assert value(prometheus, "visavis_slo_breaks_total", limit="largest_speech_gap_ms") == 0
    prometheus.turn(a_turn(speech_gaps=[GAP]))
    assert value(prometheus, "visavis_slo_breaks_total", limit="largest_speech_gap_ms") == 1
    assert value(prometheus, "visavis_slo_breaks_total", limit="freezes") == 0


def test_what_cannot_be_is_counted(prometheus: Prometheus) -> None:
    prometheus.turn(a_turn(stages_violated=["sent 40 ms after it was heard"]))
    prometheus.turn(a_turn(stages_violated=None))
    assert value(prometheus, "visavis_stage_violations_total") == 1


def test_a_turn_without_a_client_that_reports(prometheus: Prometheus) -> None:
    nothing = {"speech_end_ms": None, "shares_ms": {"asr": None}, "spans": []}
    unknown = dict.fromkeys(("kv_source", "wasted", "cancels", "token_gaps_ms", "output_tokens"))
    prometheus.turn(a_turn(stages=nothing, **unknown))
    assert value(prometheus, "visavis_wasted_tokens_total") == 0


def test_sessions_now_and_at_most(prometheus: Prometheus) -> None:
    prometheus.session_began("a")
    prometheus.session_began("b")
    prometheus.session_ended("a")
    assert value(prometheus, "visavis_sessions") == 1
    assert value(prometheus, "visavis_sessions_limit") == 4


def test_the_worst_lag_is_told_once(prometheus: Prometheus, lag: LoopLag) -> None:
    lag.note(1.0, 1.25)
    lag.note(2.0, 2.1)
    assert value(prometheus, "visavis_loop_lag_seconds") == 0.25
    assert value(prometheus, "visavis_loop_lag_seconds") == 0


def test_no_label_holds_an_id_or_a_text(prometheus: Prometheus) -> None:
    prometheus.session_began("session-5")
    prometheus.turn(a_turn(speech_gaps=[GAP], render_freezes=[FREEZE]))
    labels = {label for sample in samples(prometheus) for label in sample.labels}
    allowed = {"stage", "cause", "statistic", "input", "outcome", "code", "limit", "source", "le", "version"}
    assert labels == allowed
    values = {text for sample in samples(prometheus) for text in sample.labels.values()}
    assert not {text for text in values if "session-5" in text or "turn-7" in text}


def test_a_broker_is_told_of_once_there_is_one(prometheus: Prometheus) -> None:
    class Away:
        connected, dropped = False, 3

    assert value(prometheus, "visavis_mqtt_connected") is None
    prometheus.watch(Away())
    assert value(prometheus, "visavis_mqtt_connected") == 0
    assert value(prometheus, "visavis_mqtt_dropped_total") == 3


def test_each_has_numbers_of_its_own(prometheus: Prometheus, lag: LoopLag) -> None:
    prometheus.session_began("a")
    assert value(Prometheus(lag, slo.load(), 1), "visavis_sessions") == 0
    assert not [family for family in REGISTRY.collect() if family.name.startswith("visavis")]


def test_both_formats_that_prometheus_asks_for(prometheus: Prometheus) -> None:
    numbers, kind = prometheus.exposition("application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert numbers.endswith(b"# EOF\n")
    assert prometheus.exposition("")[1].startswith("text/plain")
