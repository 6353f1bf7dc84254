"""Lines of evidence are kept, a bounded number of them, and never at a conversation's expense."""

import json
from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.llm.pool.evidence import EvidenceLine
from services.split import evidence_log as log

LINE = EvidenceLine("r1", "acme", "embedded-split", "d1", prompt_tokens=40, unread_tokens=12, way="split")


def test_a_line_is_json_with_the_time(tmp_path: Path) -> None:
    path = tmp_path / "new" / "evidence.jsonl"
    with log.evidence_log(path) as note:
        note(LINE)
        note(LINE)
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["request"] == second["request"] == "r1"
    assert first["schema_version"] == 1
    assert first["at"].endswith("+00:00")
    assert first["kv_bytes"] is None


def test_only_so_much_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST_BYTES", 2000)
    path = tmp_path / "evidence.jsonl"
    with log.evidence_log(path) as note:
        for _ in range(200):
            note(LINE)
    kept = sorted(each.name for each in tmp_path.iterdir())
    assert kept == ["evidence.jsonl", *(f"evidence.jsonl.{n}" for n in range(1, log.KEPT + 1))]
    assert all(each.stat().st_size <= 2000 for each in tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told_at_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConfigError, match=r"llm\.split_log: expected a file that can be written"),
        log.evidence_log(tmp_path / "file" / "evidence.jsonl"),
    ):
        pass


def test_a_full_disk_costs_the_line_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with log.evidence_log(Path("/dev/full")) as note:
        note(LINE)
    assert "could not be kept in /dev/full" in caplog.text
