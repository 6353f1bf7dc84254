"""How a soak ends: its exit code, and that its report is written however it does."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError
from services.lab.soak import command
from services.lab.soak.browser import BrowserMissingError
from services.lab.soak.findings import Findings
from services.lab.soak.options import Options
from tests.browser.fake_server import fake_server
from tests.services.lab.heard import tone
from tests.services.lab.soak.canned import failed, options, record
from tests.serving import VISAVIS
from tests.speech import write_wav


def holding(monkeypatch: pytest.MonkeyPatch, *records: dict[str, Any], then: int | None = None) -> None:
    """In place of a soak: these records, and then a signal, if one is given, and time without end."""

    async def hold(options: Options, files: Any, findings: Findings, console: Any) -> None:
        findings.began, findings.ended = 0.0, 10.0
        findings.records += records
        if then is not None:
            os.kill(os.getpid(), then)
            await asyncio.Event().wait()

    monkeypatch.setattr(command, "_hold", hold)


def left_behind(folder: Path) -> dict[str, Any]:
    """report.json; that report.html can be read is checked."""
    html = (folder / "report.html").read_text("utf-8")
    HTMLParser().feed(html)
    assert html.endswith("</html>\n")
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    return report


@pytest.mark.parametrize(
    ("records", "code"), [([record()], 0), ([record(), failed()], 1), ([record(1500.0)], 1), ([], 1)]
)
async def test_the_exit_code_says_whether_limits_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, records: list[dict[str, Any]], code: int
) -> None:
    holding(monkeypatch, *records)
    assert await command.run(options(report=tmp_path / "a" / "b")) == code
    report = left_behind(tmp_path / "a" / "b")
    assert report["slo"]["holds"] is (code == 0)
    assert len(report["records"]) == len(records)
    assert report["stopped_by"] is None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_it_and_the_report_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, code: int
) -> None:
    holding(monkeypatch, record(), then=number)
    assert await command.run(options(report=tmp_path)) == code
    report = left_behind(tmp_path)
    assert report["stopped_by"] == signal.Signals(number).name
    assert len(report["records"]) == 1


async def test_a_fault_of_ours_still_leaves_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def hold(options: Options, files: Any, findings: Findings, console: Any) -> None:
        findings.began = 0.0
        findings.records.append(record())
        raise RuntimeError("a fault")

    monkeypatch.setattr(command, "_hold", hold)
    with pytest.raises(RuntimeError, match="a fault"):
        await command.run(options(report=tmp_path))
    assert len(left_behind(tmp_path)["records"]) == 1


async def test_the_verdicts_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holding(monkeypatch, record(700.0), failed())
    await command.run(options(report=tmp_path))
    told = capsys.readouterr()
    assert "aiortc: time_to_first_audio_p90_ms 700 (at most 1000): holds" in told.err
    assert "aiortc: failed_turns 1 (at most 0): broken" in told.err
    assert told.out.strip() == str(tmp_path / "report.html")


async def test_wrong_limits_are_told_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text("frozen: 1")
    with pytest.raises(ConfigError, match="frozen is no limit"):
        await command.run(options(report=tmp_path / "out", slo=tmp_path / "slo.yaml"))
    assert not (tmp_path / "out").exists()


async def test_without_a_browser_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    file = write_wav(tmp_path / "q.wav", tone(1.0))
    with pytest.raises(BrowserMissingError, match="pip install playwright"):
        await command.run(options(report=tmp_path, browser=True, audio=(file,), url="http://127.0.0.1:9"))


@pytest.mark.loopback
@pytest.mark.slow
async def test_ctrl_c_in_a_call(tmp_path: Path) -> None:
    """The real command, called off by a signal while a user waits for its answer."""
    file = write_wav(tmp_path / "q.wav", tone(1.0))
    async with fake_server() as server, asyncio.timeout(90):
        arguments = ("--turns", "3", "--url", server.url, "--report", str(tmp_path / "out"), str(file))
        process = await asyncio.create_subprocess_exec(
            VISAVIS, "soak", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        session = await server.session()
        await session.expect("client-message")
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
        await session.closed.wait()
    assert process.returncode == 130, err.decode()[-2000:]
    assert "Traceback" not in err.decode()
    assert out.decode().strip() == str(tmp_path / "out" / "report.html")
    report = left_behind(tmp_path / "out")
    assert report["stopped_by"] == "SIGINT"
    assert report["samples"]
