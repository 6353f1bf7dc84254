"""Payloads: what is in them, and that none is larger than brokers and readers are asked to take."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.telemetry.payloads import LARGEST, encoded_turn
from tests.services.telemetry.schema_check import assert_fits
from tests.services.telemetry.turns import FREEZE, GAP, a_turn


def sent(record: dict[str, Any]) -> dict[str, Any]:
    data = encoded_turn("lobby", "kiosk", "2026-01-01T00:00:00.000+00:00", record)
    assert len(data) <= LARGEST
    payload: dict[str, Any] = json.loads(data)
    assert_fits("mqtt_turn", payload)
    return payload


def test_a_turn_of_the_usual_size_is_whole() -> None:
    record = a_turn()
    payload = sent(record)
    assert payload["turn"] == json.loads(json.dumps(record))
    assert payload["shortened"] == []


def test_what_is_least_missed_goes_first() -> None:
    spans = a_turn()["stages"]["spans"] * 50
    payload = sent(a_turn(stages={**a_turn()["stages"], "spans": spans}, render_freezes=[FREEZE] * 3))
    assert payload["shortened"] == ["stages"]
    assert payload["turn"]["stages"]["spans"] == []
    assert payload["turn"]["stages"]["shares_ms"] == a_turn()["stages"]["shares_ms"]
    assert len(payload["turn"]["render_freezes"]) == 3


def test_of_many_freezes_the_longest_are_told_in_order() -> None:
    many = [{**FREEZE, "at_ms": float(n), "duration_ms": float(n % 97)} for n in range(500)]
    told = sent(a_turn(render_freezes=many))["turn"]["render_freezes"]
    assert len(told) == 20
    assert min(each["duration_ms"] for each in told) >= 92
    assert told == sorted(told, key=lambda each: each["at_ms"])


@pytest.mark.parametrize("character", ["a", "ü", "語", "\x01", "😀", "\ud83d"])
def test_long_texts_are_cut(character: str) -> None:
    texts = dict.fromkeys(("user_text", "reply_text", "heard_text"), character * 20_000)
    payload = sent(a_turn(**texts, speech_gaps=[GAP] * 300, render_freezes=[FREEZE] * 300))
    assert payload["shortened"][-1].endswith("_text")
    assert payload["turn"]["turn_id"] == "turn-7"


@given(
    st.text(max_size=9000),
    st.text(max_size=9000),
    st.integers(0, 400),
    st.integers(0, 400),
    st.integers(0, 60),
)
def test_no_turn_is_too_large(said: str, reply: str, gaps: int, freezes: int, spans: int) -> None:
    record = a_turn(
        user_text=said, reply_text=reply, speech_gaps=[GAP] * gaps, render_freezes=[FREEZE] * freezes
    )
    record["stages"] = {**record["stages"], "spans": record["stages"]["spans"] * spans}
    sent(record)
