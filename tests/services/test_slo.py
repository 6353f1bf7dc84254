"""Limits: read, judged over many turns, and broken by one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.errors import ConfigError
from pipeline.timeline.record import empty_record
from services.slo import Bound, Slo, breaks, judge, load

PACKAGED = Path(__file__).parents[2] / "configs" / "slo.yaml"


def turn(**fields: Any) -> dict[str, Any]:
    return {**empty_record(), **fields}


def good(**fields: Any) -> dict[str, Any]:
    return turn(
        **{
            "time_to_first_audio_ms": 700.0,
            "speech_gaps": [],
            "render_freezes": [],
            "av_skew_ms": {"p50": 5.0, "p95": 20.0, "max_abs": 31.0},
            **fields,
        }
    )


def verdicts(records: list[dict[str, Any]]) -> dict[str, bool | None]:
    return {verdict.name: verdict.holds for verdict in judge(load(), records)}


# ── the file ───────────────────────────────────────────────────────────────────────────────────


def test_what_ships() -> None:
    slo = load()
    assert slo.shipped, "after a change of configs/slo.yaml its digest in services/slo.py changes too"
    assert (slo.time_to_first_audio_p90_ms, slo.largest_speech_gap_ms) == (1000, 120)
    assert (slo.skew_low_ms, slo.skew_high_ms) == (-60, 90)
    assert (slo.freezes, slo.failed_turns) == (0, 0)


def test_every_limit_is_commented() -> None:
    lines = PACKAGED.read_text(encoding="utf-8").splitlines()
    above = {
        line.partition(":")[0]: lines[number - 1]
        for number, line in enumerate(lines)
        if line and not line.startswith("#")
    }
    assert set(above) == set(yaml.safe_load("\n".join(lines)))
    assert all(line.startswith(("#", "skew_low_ms")) for line in above.values())


def test_another_file_is_flagged_and_one_with_the_same_bytes_is_not(tmp_path: Path) -> None:
    same, other = tmp_path / "same.yaml", tmp_path / "other.yaml"
    same.write_bytes(PACKAGED.read_bytes())
    other.write_text(PACKAGED.read_text(encoding="utf-8").replace("1000", "2000"), encoding="utf-8")
    assert load(same) == load()
    changed = load(other)
    assert (changed.time_to_first_audio_p90_ms, changed.shipped) == (2000, False)
    assert changed.digest != load().digest


@pytest.mark.parametrize(
    ("replaced", "by", "parts"),
    [
        ("freezes: 0", "freezes: none", ["freezes", "'none'", "a whole number, at least 0"]),
        ("freezes: 0", "freezes: 0.5", ["freezes", "0.5", "a whole number"]),
        ("freezes: 0", "freezes: true", ["freezes", "True", "a whole number"]),
        ("freezes: 0", "frezes: 0", ["frezes", "no limit", "freezes"]),
        ("failed_turns: 0", "", ["failed_turns", "missing", "a whole number"]),
        ("_p90_ms: 1000", "_p90_ms: -1", ["time_to_first_audio_p90_ms", "-1", "at least 0"]),
        ("_p90_ms: 1000", "_p90_ms: .inf", ["time_to_first_audio_p90_ms", "inf", "a number"]),
        ("skew_low_ms: -60", "skew_low_ms: 100", ["skew_low_ms", "100", "at most skew_high_ms, 90"]),
        ("freezes: 0", "freezes: [", ["not valid YAML"]),
    ],
)
def test_a_wrong_limit_is_named_with_value_and_expectation(
    tmp_path: Path, replaced: str, by: str, parts: list[str]
) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(PACKAGED.read_text(encoding="utf-8").replace(replaced, by), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize("text", ["", "- 1\n", "7\n"])
def test_a_file_without_limits_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="expected the keys time_to_first_audio_p90_ms"):
        load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.yaml")


# ── the judgement ──────────────────────────────────────────────────────────────────────────────


def test_good_turns_hold_every_limit() -> None:
    assert set(verdicts([good(), good()]).values()) == {True}


def test_what_nobody_measured_does_not_pass() -> None:
    assert verdicts([turn(), turn()]) == {
        "time_to_first_audio_p90_ms": None,
        "largest_speech_gap_ms": None,
        "freezes": None,
        "skew_low_ms": None,
        "skew_high_ms": None,
        "failed_turns": True,
    }
    assert set(verdicts([]).values()) == {None}


def test_one_turn_that_knows_is_enough_for_a_verdict() -> None:
    assert set(verdicts([turn(), good()]).values()) == {True}


def test_nine_of_ten_replies_may_be_slow_only_within_the_limit() -> None:
    quick = [good() for _ in range(19)]
    assert verdicts([*quick, good(time_to_first_audio_ms=5000.0)])["time_to_first_audio_p90_ms"] is True
    slow = [good(time_to_first_audio_ms=1400.0) for _ in range(3)]
    assert verdicts([*quick, *slow])["time_to_first_audio_p90_ms"] is False


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        ({"time_to_first_audio_ms": 1000.0}, []),
        ({"time_to_first_audio_ms": 1000.1}, ["time_to_first_audio_p90_ms"]),
        ({"speech_gaps": [{"at_ms": 1.0, "duration_ms": 121.0, "cause": "tts"}]}, ["largest_speech_gap_ms"]),
        ({"speech_gaps": [{"at_ms": 1.0, "duration_ms": 119.0, "cause": "tts"}]}, []),
        ({"render_freezes": [{"at_ms": 1, "duration_ms": 400, "cause": "render", "w3c": True}]}, ["freezes"]),
        ({"render_freezes": [{"at_ms": 1, "duration_ms": 130, "cause": "render", "w3c": False}]}, []),
        ({"av_skew_ms": {"p50": -61.0, "p95": 10.0, "max_abs": 70.0}}, ["skew_low_ms"]),
        ({"av_skew_ms": {"p50": 10.0, "p95": 91.0, "max_abs": 95.0}}, ["skew_high_ms"]),
        ({"av_skew_ms": {"p50": -60.0, "p95": 90.0, "max_abs": 300.0}}, []),
        ({"failed": "llm_failed"}, ["failed_turns"]),
    ],
)
def test_what_one_turn_breaks(fields: dict[str, Any], broken: list[str]) -> None:
    assert breaks(load(), good(**fields)) == broken


def test_a_turn_that_says_nothing_breaks_nothing() -> None:
    assert breaks(load(), turn()) == []


def test_a_verdict_tells_limit_and_value() -> None:
    gaps = [{"at_ms": 1.0, "duration_ms": length, "cause": "tts"} for length in (50.0, 240.0)]
    (verdict,) = (
        each for each in judge(load(), [good(speech_gaps=gaps)]) if each.name == "largest_speech_gap_ms"
    )
    assert (verdict.bound, verdict.limit, verdict.value, verdict.holds) == (Bound.AT_MOST, 120, 240.0, False)


def test_the_limits_are_in_the_order_of_the_file() -> None:
    names = [verdict.name for verdict in judge(load(), [])]
    assert names == list(yaml.safe_load(PACKAGED.read_text(encoding="utf-8")))
    assert set(names) < set(Slo.__dataclass_fields__)
