"""What a soak can be told, and what it answers to what it cannot be."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipeline.errors import BadInputError
from services.cli import main
from services.lab.network.profiles import PROFILES
from services.lab.soak.options import Options, checked, seconds


def given(**changed: Any) -> Options:
    arguments: dict[str, Any] = {
        "sessions": 1,
        "turns": 1,
        "duration": None,
        "browser": False,
        "network": None,
        "report": Path("out"),
        "url": None,
        "config": None,
        "slo": None,
        "seed": 1,
        "audio": (),
    }
    return checked(**arguments | changed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1h", 3600), ("1.5h", 5400), ("0.5", 0.5), (" 2 m ", 120)],
)
def test_durations(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-5", "5d", "m", "1h30m", "ten", "8000h", "nan", "1e3"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(BadInputError, match=r"--duration .*: expected seconds, or 90s, 10m, 1h"):
        seconds(text)


def test_what_is_given_is_kept() -> None:
    options = given(turns=None, duration="10m", network="lossy", url="http://127.0.0.1:9/", browser=True)
    assert (options.turns, options.seconds) == (None, 600)
    assert options.profile is PROFILES["lossy"]
    assert options.url == "http://127.0.0.1:9"
    assert options.client == "chromium"
    assert given().profile is None
    assert given().client == "aiortc"


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"turns": None}, "--turns, --duration: neither given"),
        ({"duration": "1m"}, "--turns, --duration: both given"),
        ({"sessions": 0}, "--sessions 0: expected 1 to 64"),
        ({"sessions": 65}, "--sessions 65: expected 1 to 64"),
        ({"turns": 0}, "--turns 0: expected 1 to"),
        ({"turns": -1}, "--turns -1: expected 1 to"),
        ({"network": "fast"}, "--network fast: expected one of clean, lossy, bursty, jittery, slow"),
        ({"url": "localhost:80"}, "--url localhost:80: is not a server's address"),
        ({"seed": -1}, "--seed -1: expected 0 or more"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(changed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInputError) as raised:
        given(**changed)
    assert complaint in str(raised.value)


# ── at the command line ────────────────────────────────────────────────────────────────────────


def soak(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["soak", "--report", str(folder / "out"), *arguments])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--turns, --duration: neither given"),
        (("--turns", "many"), "Invalid value for '--turns'"),
        (("--turns", "1", "--slo", "none.yaml"), "none.yaml: cannot be read"),
        (("--turns", "1", "none.wav"), "none.wav: there is no such file"),
    ],
)
def test_bad_input_is_told_before_anything_is_started(
    tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    result = soak(tmp_path, *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_report_needs_a_folder() -> None:
    result = CliRunner().invoke(main, ["soak", "--turns", "1"])
    assert result.exit_code == 2
    assert "--report" in result.stderr


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    result = soak(tmp_path, "--turns", "1", "--url", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "--report" in result.stderr
