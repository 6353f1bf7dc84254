"""What each benchmark makes of its rows, also of none: Ctrl-C may come at any time."""

import io
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from pipeline.timeline.record import empty_record
from services.lab.bench import bargein, endurance, observing, peer, quality, sessions, techniques
from services.lab.bench.sitting import Options, Sitting, Summary


def sitting(rows: list[dict[str, Any]]) -> Sitting:
    options = Options(None, None, {}, Path(), None, 1, Path())
    return Sitting(options, Console(quiet=True), rows=rows)


def row(wait: float | None, **changed: Any) -> dict[str, Any]:
    shares = {"endpointing": 200.0, "tts": 100.0, "uplink": None}
    record = {**empty_record(), "time_to_first_audio_ms": wait, "stages": {"shares_ms": shares, "spans": []}}
    return {
        "said": "Hello?",
        "kind": "human",
        "pause_ms": None,
        "pause_inside": None,
        "cut": [],
        "record": record,
        "microphone_late_ms": 1.0,
        "rss_mb": 900.0,
        "threads": 20,
        "descriptors": 30,
        **changed,
    }


def printed(summary: Summary) -> str:
    console = Console(width=200, file=io.StringIO(), record=True)
    for table in summary.tables:
        console.print(table)
    return console.export_text() + "\n".join(summary.remarks)


@pytest.mark.parametrize("module", [bargein, endurance, observing, peer, quality, sessions, techniques])
def test_nothing_measured_is_no_error(module: ModuleType) -> None:
    assert printed(module.summarise(sitting([]))) is not None


def test_quality_reports_latency_and_cut_offs_of_the_same_turns() -> None:
    rows = [row(500.0), row(600.0, pause_ms=500.0, pause_inside=True)]
    rows += [row(None, pause_ms=700.0, pause_inside=True, cut=["2 turns"]), row(None)]
    rows[-1]["record"]["failed"] = "no_reply"
    summary = quality.summarise(sitting(rows))
    assert summary.values == {"time_to_first_audio_ms": [500.0, 600.0]}
    assert summary.results["cutoffs"]["all"]["rate_percent"] == 50
    assert summary.results["stages_ms"]["rest"]["median"] == 250, "what is left of 550 after 200 and 100"
    assert "uplink" not in summary.results["stages_ms"], "what is not known is not 0"
    assert (summary.results["premature"], summary.results["failed"]) == (1, 1)
    assert "2 turns" in printed(summary)


def test_several_callers_are_compared_with_one() -> None:
    still = {"speech_gaps_ms": [], "freezes_ms": [], "speech_gaps_told": None}
    rows = [row(500.0 + k, arm="1 caller", **still) for k in range(9)]
    rows += [row(800.0 + k, arm="4 callers", **still) for k in range(9)]
    rows[-1] |= {"speech_gaps_ms": [60.0], "speech_gaps_told": [{"cause": "loop"}, {"cause": "tts"}]}
    summary = sessions.summarise(sitting(rows))
    assert summary.results["ratio_of_medians"]["4 callers"]["value"] == pytest.approx(804 / 504, abs=0.001)
    alone, together = summary.results["continuity"]["1 caller"], summary.results["continuity"]["4 callers"]
    assert (alone["speech_gaps"], alone["speech_gaps_told"]) == (0, None)
    assert (together["speech_gaps"], together["speech_gaps_told"], together["longest_gap_ms"]) == (
        1,
        {"loop": 1, "tts": 1},
        60,
    )
    assert "1.595 times" in printed(summary)


def test_what_grows_is_named() -> None:
    rows = [row(500.0 + k % 3, rss_mb=900 + k, threads=20, at_s=30.0 * k) for k in range(40)]
    for warming_up in rows[:10]:
        warming_up["rss_mb"] *= 0.5
    summary = endurance.summarise(sitting(rows))
    assert summary.results["slopes_per_turn"]["server memory, MB"]["value"] == 1
    assert summary.results["slopes_per_turn"]["server threads"]["value"] == 0
    assert "queue, ms" not in summary.results["slopes_per_turn"], "no record has it"
    (remark,) = summary.remarks
    assert remark.startswith("server memory, MB: rises")


def test_what_a_technique_bought() -> None:
    rows = [row(500.0 + k, arm=techniques.ALL_ON) for k in range(10)]
    rows += [row(900.0 + k, arm="speculation off") for k in range(10)]
    found = techniques.summarise(sitting(rows)).results["difference_of_medians_ms"]
    assert found["speculation off"]["value"] == 400
    assert found["speculation off"]["low"] > 390


def test_premature_turns_of_either_side_are_counted_and_not_compared() -> None:
    def turn(side: str, ms: float | None, premature: bool = False) -> dict[str, Any]:
        return {"side": side, "premature": premature, "answered": ms is not None, "mouth_to_ear_ms": ms}

    rows = [turn("ours", 500), turn("ours", 20, premature=True), turn("peer", 1500), turn("peer", None)]
    results = peer.summarise(sitting(rows)).results
    assert results["ratios"]["median"]["value"] == pytest.approx(0.333, abs=0.001)
    assert results["counts"] == {
        "ours": {"premature": 1, "unanswered": 0},
        "peer": {"premature": 0, "unanswered": 1},
    }


def test_interruptions_real_and_false() -> None:
    reply = {**empty_record(), "reply_text": "one two three four", "heard_text": "one two"}
    real = {"trial": "question", "outcome": "disturbed", "delay_s": 1.0, "record": reply, "interrupted": True}
    rows = [
        {**real, "stop_ms": 220.0, "words_apart": 0, "ear": "one two"},
        {**real, "stop_ms": 300.0, "words_apart": 3, "ear": ""},
        {**real, "stop_ms": None},
        {
            "trial": "cough",
            "outcome": "disturbed",
            "delay_s": 2.0,
            "record": reply,
            "lost": [],
            "misheard": 1,
        },
        {
            "trial": "mm-hm",
            "outcome": "disturbed",
            "delay_s": 2.0,
            "record": reply,
            "lost": ["it was interrupted"],
        },
        {"trial": "cough", "outcome": "the reply was over", "delay_s": 2.0},
    ]
    summary = bargein.summarise(sitting(rows))
    assert summary.results["barge_in_stop_ms"]["n"] == 2
    assert summary.results["heard_text"] == {"compared": 2, "differ_by_more_than_a_word": 1}
    assert summary.results["false"]["cough"] == {"trials": 1, "lost": 0, "misheard_percent": 25.0}
    assert summary.results["false"]["mm-hm"] == {"trials": 1, "lost": 1, "misheard_percent": None}
    assert summary.results["undisturbed"] == 1
    told = printed(summary)
    assert "it was interrupted" in told
    assert "+3 words" in told


def test_observing_tells_what_the_reports_cost() -> None:
    rows = [{"arm": observing.SILENT, "server_cores": 0.1 + k / 1000} for k in range(5)]
    rows += [{"arm": observing.TOLD, "server_cores": 0.112 + k / 1000} for k in range(5)]
    cost = observing.summarise(sitting(rows)).results["cost_percent_of_a_core"]
    assert cost["value"] == pytest.approx(1.2)
    assert cost["low"] <= 1.2 <= cost["high"]
