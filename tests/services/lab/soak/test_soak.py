"""`visavis soak` against the whole stack: real models, real WebRTC, judged from its report alone."""

import json
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.serving import VISAVIS, serving

pytestmark = [pytest.mark.models, pytest.mark.engine, pytest.mark.slow]


def soak(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [VISAVIS, "soak", "--report", str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads((folder / "report.json").read_text("utf-8"))


def test_two_users_of_a_server_of_their_own(tmp_path: Path) -> None:
    before = {process.pid for process in psutil.process_iter()}
    code, report = soak(tmp_path, "--sessions", "2", "--turns", "1", "--seed", "3")
    assert (code == 0) is report["slo"]["holds"]
    assert report["slo"]["shipped"]
    records = report["records"]
    assert {record["user"] for record in records} == {0, 1}
    assert len({record["said"] for record in records}) == 2
    for record in records:
        assert record["failed"] is None
        assert record["reply_text"]
        assert record["speech_gaps"] is not None, "the server measured it from our reports"
        assert record["premature"] or record["time_to_first_audio_ms"] > 100
    assert report["samples"][0]["rss_mb"] > 100
    assert any(sample["loop_lag_ms"] is not None for sample in report["samples"])
    assert (tmp_path / "report.html").read_text("utf-8").count("<svg") >= 5
    left = [
        process.info
        for process in psutil.process_iter(["pid", "cmdline"])
        if process.pid not in before and "services.cli" in (process.info["cmdline"] or [])
    ]
    assert left == []


def test_a_lossy_network(tmp_path: Path) -> None:
    with serving({"llm.sampling.max_output_tokens": 40}) as served:
        _, report = soak(tmp_path, "--turns", "2", "--network", "lossy", "--url", served.url)
    assert report["run"]["network"] == "lossy"
    for direction in ("up", "down"):
        packets = report["packets"][direction]
        assert 0.005 < packets["lost"] / (packets["lost"] + packets["carried"]) < 0.05
    answered = [record for record in report["records"] if record["failed"] is None]
    assert len(answered) >= 2, "recognition and playout live with two per cent"
