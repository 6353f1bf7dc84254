"""`visavis soak --browser`: real Chromium users of the whole stack."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from services.lab.soak.browser import _NAMES
from tests.serving import VISAVIS, serving

pytestmark = [
    pytest.mark.browser,
    pytest.mark.models,
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.skipif(not any(map(shutil.which, _NAMES)), reason="chromium is not installed"),
]


def soak(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [VISAVIS, "soak", "--browser", "--report", str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads((folder / "report.json").read_text("utf-8"))


@pytest.mark.parametrize("network", [(), ("--network", "clean")])
def test_two_turns_of_a_browser(tmp_path: Path, network: tuple[str, ...]) -> None:
    with serving({"llm.sampling.max_output_tokens": 40}) as served:
        _, report = soak(tmp_path, "--turns", "2", "--url", served.url, *network)
    assert set(report["figures"]) == {"chromium"}
    whole = [record for record in report["records"] if not record["premature"]]
    assert len(whole) + sum(record["premature"] for record in report["records"]) >= 2
    for record in whole:
        assert record["failed"] is None
        assert record["client"] == "chromium"
        assert record["reply_text"]
        assert 100 < record["time_to_first_audio_ms"] < 10_000
        assert record["av_skew_ms"] is not None, "the page reported what it played and showed"
    if network:
        assert report["packets"]["down"]["carried"] > 100


def test_a_page_that_gets_no_call_is_failed_turns(tmp_path: Path) -> None:
    code, report = soak(tmp_path, "--turns", "2", "--url", "http://127.0.0.1:9")
    assert code == 1
    assert [record["failed"] for record in report["records"]] == ["call_failed", "call_failed"]
    assert all("ERR_" in record["error"] for record in report["records"])
