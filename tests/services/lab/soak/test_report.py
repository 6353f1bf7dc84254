"""report.json, from canned turns."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.services.lab.soak.canned import (
    FREEZE,
    GAP,
    STALL,
    built,
    failed,
    findings,
    record,
    sample,
)

SHIPPED = Path(__file__).parents[4] / "configs" / "slo.yaml"


def test_a_good_run_holds_and_is_json() -> None:
    found = built(findings(*(record(600.0 + k, at=float(k)) for k in range(10))))
    assert found["slo"]["holds"]
    assert found["slo"]["shipped"]
    assert len(found["records"]) == 10
    assert found["took_s"] == 60
    assert found["run"]["seed"] == 1
    assert json.loads(json.dumps(found)) == found
    verdicts = {each["name"]: each["holds"] for each in found["verdicts"]["aiortc"]}
    assert set(verdicts.values()) == {True}
    assert {"time_to_first_audio_p90_ms", "failed_turns", "freezes"} <= set(verdicts)


@pytest.mark.parametrize(
    "bad",
    [
        failed(),
        record(render_freezes=[FREEZE]),
        record(speech_gaps=[{**GAP, "duration_ms": 121.0}]),
        record(av_skew_ms={"p50": 50.0, "p95": 91.0, "max_abs": 95.0}),
        record(3000.0),
    ],
)
def test_one_bad_turn_of_few_breaks_a_limit(bad: dict) -> None:
    assert not built(findings(record(), bad))["slo"]["holds"]


def test_what_nothing_measured_is_no_pass() -> None:
    found = built(findings())
    assert not found["slo"]["holds"]
    assert {each["holds"] for each in found["verdicts"]["aiortc"]} == {None}


def test_another_file_of_limits_is_flagged(tmp_path: Path) -> None:
    changed = tmp_path / "slo.yaml"
    changed.write_text(SHIPPED.read_text().replace("failed_turns: 0", "failed_turns: 1"))
    found = built(findings(record(), failed()), changed)
    assert found["slo"]["holds"]
    assert not found["slo"]["shipped"]


def test_clients_are_judged_and_told_apart() -> None:
    found = built(findings(record(600.0), record(900.0, client="chromium", render_freezes=[FREEZE])))
    medians = {client: each["time_to_first_audio_ms"]["median"] for client, each in found["figures"].items()}
    assert medians == {"aiortc": 600, "chromium": 900}
    freezes = {
        client: next(each["holds"] for each in verdicts if each["name"] == "freezes")
        for client, verdicts in found["verdicts"].items()
    }
    assert freezes == {"aiortc": True, "chromium": False}
    assert not found["slo"]["holds"]


def test_figures_count_what_went_wrong() -> None:
    found = built(
        findings(
            record(speech_gaps=[GAP, GAP], render_freezes=[FREEZE, STALL]),
            record(None, premature=True, interrupted=True),
            record(speech_gaps=None, render_freezes=None, av_skew_ms=None),
            failed(),
        )
    )["figures"]["aiortc"]
    assert (found["turns"], found["failed"], found["premature"], found["interrupted"]) == (4, 1, 1, 1)
    assert found["failures"] == {"call_failed": 1}
    assert found["speech_gaps"] == {"turns": 2, "count": 2, "longest_ms": 80.0, "causes": {"tts": 2}}
    assert found["render_freezes"]["causes"] == {"render": 1, "network": 1}
    assert found["time_to_first_audio_ms"]["n"] == 2
    assert found["stages_ms"]["endpointing"]["median"] == 250


def test_slopes_are_of_what_comes_after_the_warm_up() -> None:
    rising = [sample(float(at), rss_mb=100 + at / 36) for at in range(300, 1500, 2)]
    young = [sample(float(at), rss_mb=5000.0) for at in range(0, 300, 2)]
    found = built(findings(record(), samples=young + rising))["slopes_per_hour"]
    assert found["rss_mb"]["value"] == pytest.approx(100, rel=0.01)
    assert found["threads"]["value"] == 0
    assert built(findings(record(), samples=young))["slopes_per_hour"] == {}


def test_packets_are_told_by_direction() -> None:
    counted = Counter({("up", "carried"): 5, ("up", "lost"): 1, ("down", "carried"): 7, ("down", "lost"): 0})
    assert built(findings(record(), packets=counted))["packets"] == {
        "up": {"carried": 5, "lost": 1},
        "down": {"carried": 7, "lost": 0},
    }
    assert built(findings(record()))["packets"] == {}
