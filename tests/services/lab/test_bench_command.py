"""The command around the benchmarks: what it leaves behind, however it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.errors import BadInputError, ConfigError
from services.lab import history
from services.lab.bench.__main__ import main
from services.lab.bench.sitting import Benchmark, Options, Sitting, Summary, hold


def options(folder: Path, **changed: Any) -> Options:
    given: dict[str, Any] = {
        "url": "http://127.0.0.1:9",
        "config": None,
        "overrides": {},
        "out": folder / "out",
        "history": folder / "history.jsonl",
        "seed": 7,
        "recordings": folder / "none",
    }
    return Options(**given | changed)


def counting(interrupted: bool = False) -> Benchmark:
    async def measure(sitting: Sitting) -> None:
        sitting.rows.append({"ms": float(sitting.rng().integers(1000))})
        sitting.notes.append("noted")
        if interrupted:
            raise KeyboardInterrupt

    def summarise(sitting: Sitting) -> Summary:
        found = [row["ms"] for row in sitting.rows]
        return Summary({"turns": len(found)}, {"ms": found})

    return Benchmark("counting", measure, summarise)


def left_behind(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    (line,) = history.read(folder / "history.jsonl")
    return json.loads((folder / "out" / "report.json").read_text()), line


def test_a_run_leaves_a_report_and_a_line(tmp_path: Path) -> None:
    hold(counting(), options(tmp_path))
    report, line = left_behind(tmp_path)
    assert report["rows"] == [{"ms": line["values"]["ms"][0]}]
    assert report["complete"]
    for key in ("commit", "dirty", "date", "machine", "load", "settings", "n", "results", "usage"):
        assert line[key] == report[key]
    assert line["machine"]["cores"] >= 1
    assert "rows" not in line


def test_the_same_seed_makes_the_same_choices(tmp_path: Path) -> None:
    for name in ("a", "b"):
        hold(counting(), options(tmp_path / name))
    assert left_behind(tmp_path / "a")[1]["values"] == left_behind(tmp_path / "b")[1]["values"]


def test_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        hold(counting(interrupted=True), options(tmp_path))
    report, line = left_behind(tmp_path)
    assert not line["complete"]
    assert len(report["rows"]) == 1
    assert report["notes"] == ["noted"]


def test_a_trial_is_not_kept(tmp_path: Path) -> None:
    hold(counting(), options(tmp_path, history=None))
    assert not (tmp_path / "history.jsonl").exists()


def test_a_wrong_setting_is_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"asr\.threads"):
        hold(counting(), options(tmp_path, url=None, overrides={"asr.threads": "many"}))
    assert not (tmp_path / "out").exists()


def test_settings_are_told_apart_by_a_digest(tmp_path: Path) -> None:
    digests = set()
    for threads in (1, 2, 2):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        hold(counting(), options(folder, url=None, overrides={"asr.threads": threads}))
        digests.add(left_behind(folder)[1]["settings"]["digest"])
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["latency", "--set", "asr.threads"], "expected KEY=VALUE"),
        (["latency", "--set", "asr.threads=1", "--url", "http://127.0.0.1:9"], "server of our own"),
        (["techniques", "--url", "http://127.0.0.1:9"], "starts its own servers"),
        (["techniques", "--only", "magic"], "'magic' is none of"),
        (["peer", "--peer-python", "/nowhere", "--peer-folder", "/nowhere"], "--peer-python"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert isinstance(result.exception, BadInputError)
    assert complaint in str(result.exception)


def test_every_benchmark_says_what_it_measures() -> None:
    assert {
        "latency",
        "cutoffs",
        "talk-quality",
        "bargein",
        "sessions",
        "endurance",
        "observing",
        "techniques",
        "peer",
    } <= set(main.commands)
    assert all(command.help for command in main.commands.values())


@pytest.mark.models
@pytest.mark.engine
@pytest.mark.slow
def test_two_turns_against_a_server_of_its_own(tmp_path: Path) -> None:
    arguments = ["--out", tmp_path / "out", "--history", tmp_path / "history.jsonl", "--recordings", tmp_path]
    result = CliRunner().invoke(
        main, ["talk-quality", "-n", "1", "--utterances", "1", "--seed", "1", *map(str, arguments)]
    )
    assert result.exception is None, result.output
    report, line = left_behind(tmp_path)
    assert line["n"] == 2
    assert {row["pause_ms"] is None for row in report["rows"]} == {True, False}
    answered = [row for row in report["rows"] if not row["cut"]]
    assert all(row["record"]["time_to_first_audio_ms"] > 0 for row in answered)
    assert report["usage"][0]["server_cores"] > 0
    assert report["rows"][0]["rss_mb"] > 100
    assert line["results"]["cutoffs"]["all"]["of"] == 1
