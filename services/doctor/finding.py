"""What a check of the doctor says, and how it is shown."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from rich.console import Group
from rich.table import Table
from rich.text import Text


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    """It works, with a loss that the detail names."""
    FAIL = "fail"
    """`serve` cannot work like this."""


@dataclass(frozen=True, slots=True)
class Finding:
    subject: str
    verdict: Verdict
    detail: str
    remedy: str | None = None
    """What to do, or the command to type."""


_STYLE = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}


def as_table(findings: Sequence[Finding]) -> Group:
    """One row for each finding, and the summary under them, where it is seen first."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        lines = finding.detail if finding.remedy is None else f"{finding.detail}\n→ {finding.remedy}"
        table.add_row(finding.verdict.value, finding.subject, lines, style=_STYLE[finding.verdict])
    return Group(table, Text(summary(findings), style="bold"))


def summary(findings: Sequence[Finding]) -> str:
    """One line: what is wrong, by subject, failures before warnings."""
    problems = [finding.subject for finding in findings if finding.verdict is Verdict.FAIL]
    warnings = [finding.subject for finding in findings if finding.verdict is Verdict.WARN]
    if problems:
        return f"{_count(problems, 'problem')}: {', '.join(problems)}."
    if warnings:
        return f"Ready, with {_count(warnings, 'warning')}: {', '.join(warnings)}."
    return "Ready."


def _count(subjects: Sequence[str], noun: str) -> str:
    return f"{len(subjects)} {noun}{'' if len(subjects) == 1 else 's'}"


def as_json(findings: Sequence[Finding]) -> str:
    return json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False)
