from typing import Any

import pytest

from pipeline.clock import VirtualClock
from pipeline.events import Prompt, PromptSection, Span, Stage, TurnInput, TurnTrace, Usage
from pipeline.timeline.record import TurnRecords, empty_record, stage_shares

FIELDS = {
    "schema_version", "turn_id", "session_id", "started_at", "input", "user_text", "reply_text", "heard_text",
    "committed_revision", "interrupted", "failed", "time_to_first_audio_ms", "time_to_first_sound_ms",
    "first_audio_witness_ms",
    "time_to_first_frame_ms", "total_ms", "stages", "speech_gaps", "render_freezes", "av_skew_ms",
    "barge_in_stop_ms", "first_token_ms", "handoff_gap_ms", "token_gaps_ms", "queue_ms", "retries", "cancels",
    "route", "kv_source", "prompt_digest", "evidence_digest", "prompt_tokens", "output_tokens",
    "output_tokens_per_s", "utilisation", "wasted", "speech_end_by",
    "clock_bound_ms", "not_measured", "stages_violated",
}  # fmt: skip
"""Of turns.json, as published."""


def trace(**changes: Any) -> TurnTrace:
    made = TurnTrace("t1", "s1", TurnInput.VOICE, started_at=9.0, speech_end=10.0, committed_revision=2)
    made.spans = [
        Span(Stage.ASR, 10.2, 10.3, 1),  # of a revision that was dropped
        Span(Stage.ENDPOINTING, 10.0, 10.5, 2),
        Span(Stage.ASR, 10.2, 10.35, 2),
        Span(Stage.ROUTE, 10.35, 10.36, 2),
        Span(Stage.PREFILL, 10.36, 10.6, 2),
        Span(Stage.FIRST_CLAUSE, 10.6, 10.7, 2),
        Span(Stage.TTS, 10.7, 10.8, 2),
    ]
    made.first_audio_at = 10.82
    made.ended_at = 14.0
    made.token_times = [10.6, 10.62, 10.65, 10.75]
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_a_record_has_every_field_and_no_other() -> None:
    record = TurnRecords(VirtualClock(5.0), {"pattern": "colocated"})(trace())
    assert set(record) == FIELDS
    assert set(empty_record()) == FIELDS
    assert set(record["route"]) == {"pattern", "dialect", "contract", "fallback_from", "kv_bytes", "kv_ms"}
    assert record["retries"] is None, "nobody counts them"


def test_the_first_token_is_the_committed_revisions() -> None:
    dropped = Span(Stage.PREFILL, 10.1, 10.2, 1)
    records = TurnRecords(VirtualClock(5.0), {})
    assert records(trace())["first_token_ms"] == pytest.approx(240)
    assert records(trace(spans=[dropped]))["first_token_ms"] is None
    handoff = Span(Stage.HANDOFF, 10.6, 10.65, 2)
    assert records(trace(spans=[*trace().spans, handoff]))["first_token_ms"] == pytest.approx(290)


def test_shares_add_up_to_the_wait_and_hidden_work_costs_nothing() -> None:
    shares = stage_shares(trace())["shares_ms"]
    assert shares["endpointing"] == 500
    assert shares["asr"] == 0, "done inside the silence"
    assert shares["prefill"] == pytest.approx(100)
    assert shares["first_clause"] == pytest.approx(100)
    assert shares["tts"] == pytest.approx(100)
    assert shares["egress"] == pytest.approx(20)
    assert sum(value for value in shares.values() if value) == pytest.approx(820)
    assert shares["uplink"] is None, "the server does not see it"
    assert shares["playout"] is None


def test_a_turn_without_sound_has_no_shares_but_keeps_its_spans() -> None:
    stages = stage_shares(trace(first_audio_at=None))
    assert set(stages["shares_ms"].values()) == {None}
    assert len(stages["spans"]) == 6


def test_what_is_not_known_is_null() -> None:
    record = TurnRecords(VirtualClock(), {})(
        TurnTrace("t1", "s1", TurnInput.VOICE, started_at=1.0, failed="asr_failed", ended_at=2.0)
    )
    for name in (
        "first_token_ms",
        "token_gaps_ms",
        "kv_source",
        "prompt_digest",
        "output_tokens",
        "speech_gaps",
    ):
        assert record[name] is None
    assert record["total_ms"] == 1000
    assert record["failed"] == "asr_failed"


def test_tokens_and_their_source() -> None:
    prompt = Prompt((), (PromptSection("evidence", "e" * 64, 12),), "p" * 64, 80)
    record = TurnRecords(VirtualClock(), {})(
        trace(prompt=prompt, usage=Usage(prompt_tokens=100, cached_tokens=80, output_tokens=5))
    )
    assert record["kv_source"] == {"computed": 20, "prefix": 80, "handoff": 0, "reload": 0}
    assert record["first_token_ms"] == pytest.approx(240)
    assert record["token_gaps_ms"] == {"p50": 30.0, "p99": 100.0, "max": 100.0, "unit": "chunk"}
    assert record["output_tokens_per_s"] == pytest.approx(4 / 0.15, abs=0.1)
    assert record["prompt_digest"] == "p" * 64
    assert record["evidence_digest"] == "e" * 64
