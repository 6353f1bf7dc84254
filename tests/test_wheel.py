"""The built wheel, installed outside the checkout, is the whole product."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import wave
import zipfile
from pathlib import Path

import pytest

from pipeline.events import WIRE_RATE
from tests.speech import spoken

REPOSITORY = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, REPOSITORY]
    subprocess.run(build, check=True)
    (built,) = folder.glob("visavis-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with the wheel in it.

    The dependencies are those of the environment the tests run in, named in a path file. The path
    files over there, the one of the editable checkout among them, are not read from here.
    """
    environment = tmp_path_factory.mktemp("installed")
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel]
    subprocess.run(install, check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that is not the checkout, with nothing of it on any path."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("VISAVIS_SERVER__PORT", "0")
    monkeypatch.setenv("VISAVIS_SERVER__CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*command: str | os.PathLike[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_the_wheel_holds_code_page_and_settings_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {
        "configs",
        "pipeline",
        "services",
        "web",
    }
    assert {"configs/local.yaml", "services/models.txt", "web/index.html", "web/app.js"} <= set(names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert [
        name for name in names if "__pycache__" in name or name.endswith((".pyc", ".onnx", ".gguf"))
    ] == []


def test_what_runs_is_the_wheel(installed: Path, elsewhere: Path) -> None:
    names = "pipeline, services, configs, web"
    code = f"import {names}; print(*(module.__file__ for module in ({names})))"
    shown = run(installed / "python", "-c", code)
    assert shown.returncode == 0, shown.stderr
    assert all(Path(path).is_relative_to(installed.parent) for path in shown.stdout.split())


@pytest.mark.models
def test_the_doctor_finds_it_fit(installed: Path, elsewhere: Path) -> None:
    shown = run(installed / "visavis", "doctor", "--json")
    findings = json.loads(shown.stdout)
    assert [finding for finding in findings if finding["verdict"] == "fail"] == []
    assert shown.returncode == 0


LOOPBACK_ONLY = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
"""Runs a command where there is no network interface but lo, and no way out."""


@pytest.fixture(scope="module")
def question(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("question") / "ocean.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(WIRE_RATE)
        file.writeframes(spoken("What is the largest ocean on Earth?", WIRE_RATE).tobytes())
    return path


@pytest.mark.models
@pytest.mark.engine
def test_it_talks_from_an_empty_cache_with_no_network(
    installed: Path, elsewhere: Path, question: Path
) -> None:
    allowed = run(*LOOPBACK_ONLY, "true")
    if allowed.returncode:
        pytest.skip(f"a network of its own needs root, unshare and ip: {allowed.stderr.strip()}")
    talk = (installed / "visavis", "talk", question, "--out", "out", "--video")
    done = run(*LOOPBACK_ONLY, *talk)
    assert done.returncode == 0, done.stderr
    (turn,) = json.loads((elsewhere / "out" / "turns.json").read_text())
    assert "ocean" in turn["user_text"].lower()
    assert turn["reply_text"]
    assert turn["time_to_first_audio_ms"] > 0
    with wave.open(str(elsewhere / "out" / "reply.wav")) as reply:
        assert any(reply.readframes(reply.getnframes()))
    assert (elsewhere / "out" / "captions.vtt").read_text().startswith("WEBVTT")
    assert (elsewhere / "out" / "reply.mp4").stat().st_size > 10_000
    assert list((elsewhere / "cache").rglob("*.Q8_0.gguf"))
