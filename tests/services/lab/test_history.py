import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline.errors import BadInputError
from services.lab import history
from services.lab.bench.compare import compare, ratios


def run(commit: str, *values: float, benchmark: str = "latency", **changed: Any) -> dict[str, Any]:
    return {
        "benchmark": benchmark,
        "commit": commit,
        "dirty": False,
        "date": "2026-01-01T00:00:00.000+00:00",
        "machine": {"cpu": "a", "cores": 2},
        "load": {"before": [0.1, 0.1, 0.1]},
        "settings": {"overrides": {}},
        "complete": True,
        "values": {"time_to_first_audio_ms": list(values)},
        **changed,
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "new" / "history.jsonl"
    history.append(path, run("aaaa1111", 1000, 1100, 1200))
    history.append(path, run("bbbb2222", 500, 550, 600))
    history.append(path, run("bbbb2222", 250, 275, 300))
    history.append(path, run("bbbb2222", 9, benchmark="bargein"))
    return path


def test_runs_are_added_and_never_changed(file: Path) -> None:
    before = file.read_text()
    history.append(file, run("cccc3333", 1))
    assert file.read_text().startswith(before)
    assert [each["commit"] for each in history.read(file)][-1] == "cccc3333"
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_the_newest_run_of_a_commit_is_meant(file: Path) -> None:
    (newest,) = history.newest(file, "bbbb", "latency").values()
    assert newest["values"]["time_to_first_audio_ms"] == [250, 275, 300]
    assert set(history.newest(file, "latest", None)) == {"latency", "bargein"}


@pytest.mark.parametrize(("wanted", "benchmark"), [("dddd", None), ("aaaa", "bargein")])
def test_a_run_that_is_not_there_is_named(file: Path, wanted: str, benchmark: str | None) -> None:
    with pytest.raises(BadInputError, match=wanted):
        history.newest(file, wanted, benchmark)


def test_a_line_that_is_not_json_is_named(file: Path) -> None:
    with file.open("a") as lines:
        lines.write("{oh\n")
    with pytest.raises(BadInputError, match="line 5"):
        list(history.read(file))


def test_medians_are_compared_with_an_interval() -> None:
    ((name, a, b, value, low, high),) = ratios(run("a", 500, 550, 600), run("b", 1000, 1100, 1200))
    assert (name, a, b, value) == ("time_to_first_audio_ms", 3, 3, 0.5)
    assert low < value < high
    assert ratios(run("a"), run("b", 1.0)) == [], "nothing measured, nothing compared"


def test_a_comparison_says_what_makes_it_doubtful(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy = {"load": {"before": [3.0, 1, 1]}, "complete": False, "settings": {"overrides": {"asr.threads": 1}}}
    history.append(file, run("cccc3333", 700, **busy))
    compare(file, "cccc", "aaaa", "latency", Console(width=200))
    told = capsys.readouterr().out
    assert "0.636" in told
    for doubt in ("busy: load 3.0", "not complete", "other settings"):
        assert doubt in told


def test_where_we_are_is_a_commit() -> None:
    found = history.commit()
    if found["commit"] is None:
        pytest.skip("not a git checkout")
    assert len(found["commit"]) == 12
    assert isinstance(found["dirty"], bool)
