"""`visavis replay` as it is used: a call held by a real server, and its recording alone."""

import subprocess
from pathlib import Path

import pytest

from tests.services.lab.replay.calls import only
from tests.serving import VISAVIS, serving
from tests.speech import spoken, write_wav

QUESTIONS = (
    "What is the difference between a lake and a river?",
    "Can you tell me a short story about a dog?",
    "Why is the sky blue?",
    "Okay, goodbye.",
)


def visavis(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [str(VISAVIS), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    files = [write_wav(folder / f"q{n}.wav", spoken(text)) for n, text in enumerate(QUESTIONS)]
    with serving({"telemetry.recordings": str(folder / "calls")}) as served:
        talk = visavis("talk", *files, "--url", served.url, "--out", folder / "out")
    assert talk.returncode == 0, talk.stderr
    return only(folder / "calls")


@pytest.mark.models
@pytest.mark.engine
@pytest.mark.slow
def test_a_real_call_goes_as_it_did(recording: Path) -> None:
    replay = visavis("replay", recording)
    assert replay.returncode == 0, replay.stdout + replay.stderr
    assert f"as the call did: {len(QUESTIONS)} turns" in replay.stdout
    assert "not on the tape" not in replay.stdout


@pytest.mark.models
@pytest.mark.engine
@pytest.mark.slow
def test_another_patience_is_told_with_what_it_changes(recording: Path, tmp_path: Path) -> None:
    settings = tmp_path / "patient.yaml"
    settings.write_text("turn_taking: {patience: {shortest_ms: 900, unsure_ms: 950}}")
    replay = visavis("replay", recording, "--config", settings)
    assert replay.returncode == 1
    assert "changed: turn_taking.patience.shortest_ms 200 → 900" in replay.stdout
    assert "The replay differs from" in replay.stdout


def test_a_folder_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    replay = visavis("replay", tmp_path)
    assert replay.returncode == 2
    assert replay.stderr.startswith(f"Error: {tmp_path}: is not the recording of a call")
