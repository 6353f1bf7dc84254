"""Settings: what is accepted, where they come from, and what a person reads when one is wrong."""

import os
import re
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from pipeline.errors import ConfigError
from services.config import Config, load
from services.config.sources import PREFIX

PACKAGED = Path(__file__).parents[2] / "configs" / "local.yaml"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        monkeypatch.delenv(name)


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "site.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def complaint(path: Path | None = None, overrides: dict[str, object] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, overrides)
    assert caught.value.__cause__ is None
    assert "pydantic" not in str(caught.value)
    return str(caught.value)


# ── the packaged file ──────────────────────────────────────────────────────────────────────────


def test_the_packaged_file_states_every_default() -> None:
    written = yaml.safe_load(PACKAGED.read_text(encoding="utf-8"))
    assert written == Config().model_dump(mode="json")
    assert load() == Config()


def test_every_key_of_the_packaged_file_is_commented() -> None:
    """A key stands under its own comment, or directly below a sibling that shares it."""
    lines = PACKAGED.read_text(encoding="utf-8").splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r" *[a-z_0-9]+:", line)]
    assert len(keys) > 60
    for number in keys:
        above = number - 1
        while above in keys and indentation(lines[above]) == indentation(lines[number]):
            above -= 1
        assert lines[above].lstrip().startswith("#"), f"no comment above line {number + 1}: {lines[number]}"


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


# ── precedence ─────────────────────────────────────────────────────────────────────────────────


def test_options_win_over_variables_over_the_file_over_defaults(write, monkeypatch) -> None:
    path = write("server: {port: 1000, max_sessions: 2}\nrender: {fps: 30}\n")
    monkeypatch.setenv("VISAVIS_SERVER__PORT", "2000")
    monkeypatch.setenv("VISAVIS_SERVER__MAX_SESSIONS", "3")
    config = load(path, {"server.port": 3000})
    assert (config.server.port, config.server.max_sessions) == (3000, 3)
    assert (config.render.fps, config.render.size) == (30, 512)


def test_variables_can_set_lists_nulls_booleans_and_deep_keys(write, monkeypatch) -> None:
    monkeypatch.setenv("VISAVIS_SERVER__ICE_SERVERS", '[{"urls": "stun:a.example:3478"}]')
    monkeypatch.setenv("VISAVIS_LLM__SAMPLING__SEED", "null")
    monkeypatch.setenv("VISAVIS_LLM__EMBEDDED__REQUANTISE", "false")
    monkeypatch.setenv("visavis_turn_taking__vad__threshold", "0.7")
    config = load(write("llm: {sampling: {seed: 5}}"))
    assert config.server.ice_servers[0].urls == ("stun:a.example:3478",)
    assert config.llm.sampling.seed is None
    assert config.llm.embedded.requantise is False
    assert config.turn_taking.vad.threshold == 0.7


@pytest.mark.parametrize("text", ["", "# nothing\n", "server:\n", "server:\n  # port: 1\nllm:\n  openai:\n"])
def test_an_empty_file_or_section_means_the_defaults(write, text: str) -> None:
    assert load(write(text)) == Config()


def test_settings_cannot_be_changed_after_loading() -> None:
    config = load()
    with pytest.raises(ValidationError):
        config.server.port = 1


def test_the_cache_folder_is_the_users_unless_set(tmp_path: Path) -> None:
    assert load(None, {"server.cache_dir": tmp_path}).server.cache_folder == tmp_path
    assert load().server.cache_folder.name == "visavis"


def test_a_node_is_called_like_its_machine_unless_it_has_a_name(monkeypatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "Büro 7/links")
    assert load().telemetry.node_name == "B-ro-7-links"
    assert load(None, {"telemetry.node": "kiosk-3"}).telemetry.node_name == "kiosk-3"


# ── what a person reads ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("server:\n  prot: 9000\n", ["line 2", "server.prot", "9000", "server.port"]),
        ("port: 9000\n", ["line 1", "port", "9000", "server.port"]),
        ("agnet:\n  name: Ada\n", ["line 1", "agnet", "the nearest is agent"]),
        ("server: {xyzzy: 1}\n", ["server.xyzzy", "server takes host, port"]),
        ("server:\n  port: http\n", ["line 2", "server.port", "'http'", "a whole number, at least 0"]),
        ("server:\n  port: 65536\n", ["65536", "at most 65535"]),
        ("asr: {threads: yes}\n", ["asr.threads", "true", "a whole number"]),
        ("asr: {threads: 1.5}\n", ["asr.threads", "1.5", "a whole number"]),
        ("asr: {language: no}\n", ["asr.language", "false", "text, in quotes"]),
        ("tts: {length_scale: .nan}\n", ["tts.length_scale", "nan", "a number, at least 0.5"]),
        ("render: {size: 511}\n", ["render.size", "511", "a multiple of 2"]),
        ("render: 5\n", ["line 1", "render", "a section of keys"]),
        ("llm: {kind: openia}\n", ["llm.kind", "'openia'", "one of embedded, openai", "nearest is openai"]),
        ("telemetry: {log_level: debug}\n", ["telemetry.log_level", "'debug'", "DEBUG, INFO"]),
        ("server: {ice_servers: [{urls: 'http:x'}]}\n", ["server.ice_servers.0.urls.0", "'http:x'", "stun:"]),
        ("server: {ice_servers: [{username: u}]}\n", ["server.ice_servers.0.urls", "is missing"]),
        ("asr: {model: /no/such/folder}\n", ["asr.model", "/no/such/folder", "folder that exists"]),
        ("tts: {voice: ~/no-such.onnx}\n", ["tts.voice", "no-such.onnx", "file that exists"]),
        ("server:\n  port: 1\n  port: 2\n", ["line 3", "server.port", "twice"]),
        ("telemetry: {site: a/b}\n", ["telemetry.site", "'a/b'", "one level of MQTT topics"]),
        ("telemetry: {node: ''}\n", ["telemetry.node", "''", "1 to 64 letters"]),
        ("telemetry: {mqtt: {url: 'tcp://h'}}\n", ["telemetry.mqtt.url", "'tcp://h'", "mqtt://host:1883"]),
        ("telemetry: {mqtt: {url: 'mqtt://h:x'}}\n", ["telemetry.mqtt.url", "mqtt://host:1883"]),
        ("telemetry: {mqtt: {password: p}}\n", ["telemetry.mqtt.username is null", "belongs to"]),
        ("telemetry: {otlp_endpoint: h}\n", ["telemetry.otlp_endpoint", "'h'", "http://"]),
        ("telemetry: {slo: /no/such}\n", ["telemetry.slo", "/no/such", "file that exists"]),
    ],
)
def test_a_wrong_setting_is_named_with_value_place_and_expectation(
    write, text: str, parts: list[str]
) -> None:
    path = write(text)
    message = complaint(path)
    assert message.startswith(str(path))
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("turn_taking: {pause_ms: 250}", ["turn_taking.patience.shortest_ms is 200", "at least", "250"]),
        ("turn_taking: {patience: {longest_ms: 550}}", ["turn_taking.patience.unsure_ms is 720", "550"]),
        ("agent: {max_text_chars: 4001}", ["agent.max_text_chars is 4001", "at most 4000"]),
        ("asr: {short_window: {max_speech_s: 29}}", ["asr.short_window.max_speech_s is 29", "28"]),
        (
            "llm: {context_tokens: 256, sampling: {max_output_tokens: 300}}",
            ["llm.context_tokens is 256", "540"],
        ),
        ("llm: {kind: openai}", ["llm.openai.base_url is null", "kind is openai"]),
        ("llm: {kind: openai, openai: {base_url: 'http://a/v1'}}", ["llm.openai.model is null"]),
        ("llm: {openai: {base_url: 'a/v1'}}", ["llm.openai.base_url is 'a/v1'", "http://"]),
        ("llm: {evidence: {enabled: true}}", ["llm.evidence.folder is null", "enabled is true"]),
    ],
)
def test_settings_that_contradict_each_other_are_refused(write, text: str, parts: list[str]) -> None:
    message = complaint(write(text))
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example.org", ""])
def test_a_host_that_others_can_reach_is_refused(host: str) -> None:
    message = complaint(None, {"server.host": host})
    assert message.startswith("command line, --host: server.host")
    assert "access tokens" in message


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_hosts_are_accepted(host: str) -> None:
    assert load(None, {"server.host": host}).server.host == host


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    pem = tmp_path / "a.pem"
    pem.touch()
    assert "server.tls_key is null" in complaint(None, {"server.tls_cert": pem})
    assert "server.tls_cert is null" in complaint(None, {"server.tls_key": pem})
    assert "a file that exists" in complaint(
        None, {"server.tls_cert": tmp_path / "b.pem", "server.tls_key": pem}
    )
    assert load(None, {"server.tls_cert": pem, "server.tls_key": pem}).server.tls_cert == pem


def test_all_faults_are_reported_together_each_with_its_source(write, monkeypatch) -> None:
    path = write("server:\n  prot: 1\nrender:\n  fps: fast\n")
    monkeypatch.setenv("VISAVIS_ASR__THREADS", "none")
    monkeypatch.setenv("VISAVIS_PORT", "1")
    lines = complaint(path, {"server.host": "0.0.0.0"}).splitlines()
    assert lines[0] == "5 settings are wrong:"
    assert any(f"{path}, line 2: server.prot" in line for line in lines)
    assert any(f"{path}, line 4: render.fps" in line for line in lines)
    assert any("environment, VISAVIS_ASR__THREADS: asr.threads is 'none'" in line for line in lines)
    assert any("environment, VISAVIS_PORT" in line and "nearest is server.port" in line for line in lines)
    assert any("command line, --host: server.host" in line for line in lines)


def test_a_list_in_a_variable_that_is_not_json_is_named(monkeypatch) -> None:
    monkeypatch.setenv("VISAVIS_SERVER__ICE_SERVERS", "turn:a")
    message = complaint()
    assert "VISAVIS_SERVER__ICE_SERVERS" in message
    assert "not JSON" in message


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"server:\n\tport: 1\n", ["line 2, column 1", "not valid YAML"]),
        (b"server: {port: 1\n", ["line", "column", "not valid YAML"]),
        (b"- a\n- b\n", ["a mapping of sections", "list"]),
        (b"\xff\xfe\x00", ["not UTF-8"]),
        (b"a: &a {b: *a}\n", ["line 1", "aliases"]),
        (b"agent: {name: 2026-13-41}\n", ["not valid YAML"]),
        (b"a: 1\n---\nb: 2\n", ["line 2", "not valid YAML"]),
        (b"agent: {name: !!python/object:os.system x}\n", ["line 1", "not valid YAML"]),
    ],
)
def test_a_file_that_is_not_yaml_is_refused_with_its_place(
    tmp_path: Path, content: bytes, parts: list[str]
) -> None:
    path = tmp_path / "site.yaml"
    path.write_bytes(content)
    message = complaint(path)
    assert message.startswith(str(path))
    assert [part for part in parts if part not in message] == []


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "there is no such file" in complaint(tmp_path / "none.yaml")
    assert "cannot be read" in complaint(tmp_path)


# ── secrets ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "llm: {api_kee: s3cret}",
        "llm: {openai: s3cret}",
        "llm: {openai: {api_key: [s3cret]}}",
        "llm: {openai: {apikye: s3cret}}",
        "llm: {openai: {base_url: 'ftp://me:s3cret@host/v1'}}",
        "telemetry: {mqtt: {url: 'mqtt://me:s3cret@host'}}",
        "telemetry: {mqtt: {pasword: s3cret}}",
        "telemetry: {mqtt: {password: s3cret}}",
        "openai_token: s3cret",
        "server: {ice_servers: s3cret}",
        "server: {ice_servers: [{urls: x, credential: s3cret}]}",
        "server: {ice_servers: [{urls: 'stun:x', pasword: s3cret}]}",
        "server: {ice_servers: [{urls: 'stun:x', foo: s3cret}]}",
        "server: {ice_servers: [s3cret]}",
    ],
)
def test_a_complaint_never_shows_a_secret(write, text: str) -> None:
    assert "s3cret" not in complaint(write(text))


def test_a_secret_in_a_variable_is_never_shown(write, monkeypatch) -> None:
    monkeypatch.setenv("VISAVIS_LLM__OPENAI__APIKEY", "s3cret")
    monkeypatch.setenv("VISAVIS_SERVER__ICE_SERVERS", '[{"credential": "s3cret"}, s3cret')
    assert "s3cret" not in complaint()
    monkeypatch.delenv("VISAVIS_LLM__OPENAI__APIKEY")
    monkeypatch.delenv("VISAVIS_SERVER__ICE_SERVERS")
    monkeypatch.setenv("VISAVIS_LLM__OPENAI__API_KEY", "s3cret")
    config = load()
    assert config.llm.openai.api_key is not None
    assert config.llm.openai.api_key.get_secret_value() == "s3cret"
    assert "s3cret" not in repr(config)
