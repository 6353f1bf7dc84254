"""The committed schemas are those of the code, and what really leaves fits them."""

import dataclasses
import json
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator, ValidationError

from pipeline.clock import VirtualClock
from pipeline.events import TurnInput, TurnTrace
from pipeline.timeline.record import TurnRecords, empty_record
from pipeline.timeline.turn_record import SpokenTurn, TurnRecord
from services.telemetry import schemas
from tests.services.telemetry.schema_check import assert_fits
from tests.services.telemetry.turns import FREEZE, GAP, a_turn


def test_the_committed_schemas_are_up_to_date() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in schemas.folder().iterdir()}
    assert committed == schemas.generated(), "run: python -m services.telemetry.schemas"


def test_they_are_schemas_with_a_version() -> None:
    for name, text in schemas.generated().items():
        schema = json.loads(text)
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == name
        shape = schema["$defs"]["SpokenTurn"] if schema.get("type") == "array" else schema
        assert shape["properties"]["schema_version"]["const"] == 1
        assert "schema_version" in shape["required"]


def test_a_record_as_the_timeline_makes_it() -> None:
    assert_fits("turn", a_turn(), a_turn(speech_gaps=[GAP], render_freezes=[FREEZE]))
    assert set(a_turn()) == {field.name for field in dataclasses.fields(TurnRecord)}


def test_a_record_of_which_nothing_is_known() -> None:
    trace = TurnTrace("t", "s", TurnInput.TEXT, started_at=1.0, failed="asr_failed")
    assert_fits("turn", empty_record(), TurnRecords(VirtualClock(), {})(trace))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema_version", 2),
        ("input", "gesture"),
        ("interrupted", None),
        ("time_to_first_audio_ms", "soon"),
        ("speech_gaps", [{**GAP, "cause": "weather"}]),
        ("render_freezes", [GAP]),
        ("av_skew_ms", {"p50": 1.0}),
    ],
)
def test_what_is_no_record_does_not_fit(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        assert_fits("turn", a_turn(**{field: value}))


def test_turns_json_is_records_with_what_only_a_caller_knows() -> None:
    assert_fits(
        "turns", [], [{**a_turn(), "file": "a.wav", "premature": False, "ledger_first_audio_ms": 512.5}]
    )
    with pytest.raises(ValidationError):
        assert_fits("turns", [a_turn()])
    assert {field.name for field in dataclasses.fields(SpokenTurn)} - set(a_turn()) == {
        "file",
        "premature",
        "ledger_first_audio_ms",
    }


def test_the_data_channels_own_words_on_records_agree() -> None:
    messages = json.loads((files("web") / "messages.schema.json").read_text(encoding="utf-8"))
    said = messages["$defs"]["turnRecord"]
    named = set(said["properties"]) | set(said["required"])
    assert named <= {field.name for field in dataclasses.fields(TurnRecord)}
    there = Draft202012Validator({"$ref": "#/$defs/turnRecord", "$defs": messages["$defs"]})
    there.validate(a_turn(speech_gaps=[GAP], render_freezes=[FREEZE]))
