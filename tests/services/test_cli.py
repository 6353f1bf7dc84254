"""The `visavis` command: options, exit codes, and errors as a person at a terminal sees them."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from pipeline.errors import BadAudioError, LanguageModelError, MissingModelError, VisavisError
from services.cli import main
from services.config import Config


def visavis(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """Stands in for the gateway; collects the settings it was started with."""
    started: list[Config] = []

    async def run(config: Config, *, with_parent: bool = False) -> None:
        started.append(config)

    monkeypatch.setitem(sys.modules, "services.gateway.serve", SimpleNamespace(run=run))
    return started


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    held: list[tuple[Any, ...]] = []

    async def run(config: Config, *arguments: Any) -> int:
        held.append(arguments)
        return 3

    monkeypatch.setitem(sys.modules, "services.lab.talk", SimpleNamespace(run=run))
    return held


def failing_server(monkeypatch: pytest.MonkeyPatch, error: VisavisError) -> None:
    async def run(config: Config, *, with_parent: bool = False) -> None:
        raise error

    monkeypatch.setitem(sys.modules, "services.gateway.serve", SimpleNamespace(run=run))


def test_options_of_serve_become_settings(server: list[Config], tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("server: {port: 1000}\nrender: {fps: 30}\n")
    pem = tmp_path / "a.pem"
    pem.touch()
    options = ("--host", "::1", "--port", "0", "--tls-cert", str(pem), "--tls-key", str(pem))
    assert visavis("serve", "--config", str(site), *options).exit_code == 0
    (config,) = server
    assert (config.server.host, config.server.port, config.server.tls_cert) == ("::1", 0, pem)
    assert config.render.fps == 30


def test_serve_without_options_keeps_the_files_settings(server: list[Config], tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("server: {port: 1000}")
    visavis("serve", "--config", str(site))
    assert server[0].server.port == 1000


def test_talk_passes_its_arguments_and_exits_with_the_conversations_code(conversation) -> None:
    result = visavis("talk", "a.wav", "b.wav", "--url", "http://localhost:1", "--out", "results", "--video")
    assert result.exit_code == 3
    assert conversation == [((Path("a.wav"), Path("b.wav")), "http://localhost:1", Path("results"), True)]


def test_talk_has_defaults(conversation) -> None:
    visavis("talk", "a.wav")
    assert conversation == [((Path("a.wav"),), None, Path("out"), False)]


def test_talk_without_a_file_is_refused() -> None:
    result = visavis("talk")
    assert result.exit_code == 2
    assert "AUDIO" in result.stderr


@pytest.mark.parametrize("command", [("serve",), ("talk", "a.wav")])
def test_a_wrong_setting_is_one_plain_message_and_exit_code_2(
    command, server, conversation, tmp_path
) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("server:\n  prot: 1\n")
    result = visavis(*command, "--config", str(site))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {site}, line 2: server.prot is not a setting")
    assert "Traceback" not in result.output
    assert server == conversation == []


def test_a_host_others_can_reach_is_refused(server: list[Config]) -> None:
    result = visavis("serve", "--host", "0.0.0.0")
    assert result.exit_code == 2
    assert "command line, --host" in result.stderr
    assert "access tokens" in result.stderr
    assert server == []


@pytest.mark.parametrize(
    ("error", "code"),
    [(BadAudioError("a.wav: no speech in it"), 2), (LanguageModelError("the engine ended"), 1)],
)
def test_errors_end_in_a_message_without_traceback(monkeypatch, error: VisavisError, code: int) -> None:
    failing_server(monkeypatch, error)
    result = visavis("serve")
    assert (result.exit_code, result.stderr) == (code, f"Error: {error}\n")


def test_a_missing_model_points_to_the_doctor(monkeypatch) -> None:
    failing_server(monkeypatch, MissingModelError("no voice"))
    result = visavis("serve")
    assert result.exit_code == 1
    assert "no voice" in result.stderr
    assert "visavis doctor" in result.stderr


def test_debug_shows_where_an_error_came_from(monkeypatch) -> None:
    failing_server(monkeypatch, LanguageModelError("the engine ended"))
    result = visavis("serve", "--debug")
    assert isinstance(result.exception, LanguageModelError)


def test_every_command_takes_config_and_explains_itself() -> None:
    groups = {name: each for name, each in main.commands.items() if isinstance(each, click.Group)}
    names = [[name] for name in main.commands if name not in groups]
    names += [[group, name] for group, each in groups.items() for name in each.commands]
    for name in names:
        help_text = visavis(*name, "--help").output
        assert "--config" in help_text
        assert "--debug" in help_text


def test_the_version_is_the_packages() -> None:
    assert "visavis, version " in visavis("--version").output


def test_doctor_prints_json_and_fails_on_wrong_settings(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("server: {host: 0.0.0.0}")
    result = visavis("doctor", "--json", "--config", str(site))
    findings = json.loads(result.stdout)
    assert result.exit_code == 1
    assert findings[0]["subject"] == "settings"
    assert findings[0]["verdict"] == "fail"
    assert "access tokens" in findings[0]["detail"]


def test_a_missing_python_package_is_named_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(config: Config, *, with_parent: bool = False) -> None:
        raise ModuleNotFoundError("No module named 'piper'", name="piper")

    monkeypatch.setitem(sys.modules, "services.gateway.serve", SimpleNamespace(run=run))
    result = visavis("serve")
    assert result.exit_code == 1
    assert "the Python package piper is not installed" in result.output
    assert "visavis doctor" in result.output
