"""What is missing or misconfigured on this machine, in plain words. `visavis doctor` shows it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.errors import ConfigError
from services.config import Config, load
from services.doctor import machine, software
from services.doctor.finding import Finding, Verdict

__all__ = ["Finding", "Verdict", "examine", "something_fails"]

CHECKS: Sequence[Callable[[Config], Finding]] = (
    software.python,
    software.packages,
    software.native_modules,
    software.one_opencv,
    software.hearing_model,
    software.language_model,
    software.voice,
    software.turn_detector,
    machine.cores,
    machine.memory,
    machine.cache,
    machine.port,
    machine.tls,
    machine.network,
    machine.language_model_server,
    machine.browser,
)


def examine(config_file: Path | None) -> list[Finding]:
    """Every check, on the settings of a file (None: the packaged one), in order. Changes nothing."""
    try:
        config = load(config_file)
    except ConfigError as error:
        settings = Finding(
            "settings", Verdict.FAIL, str(error), "mend them; the rest is checked with defaults"
        )
        config = Config()
    else:
        settings = Finding(
            "settings", Verdict.OK, str(config_file or "built in, with your VISAVIS_ variables")
        )
    return [settings, *(check(config) for check in CHECKS)]


def something_fails(findings: Sequence[Finding]) -> bool:
    """Whether something that is needed is missing or wrong."""
    return any(finding.verdict is Verdict.FAIL for finding in findings)
