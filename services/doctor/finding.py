"""What a check of the doctor says, and how it is shown."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from rich.table import Table


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


def as_table(findings: Sequence[Finding]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        lines = finding.detail if finding.remedy is None else f"{finding.detail}\n→ {finding.remedy}"
        table.add_row(finding.verdict.value, finding.subject, lines, style=_STYLE[finding.verdict])
    return table


def as_json(findings: Sequence[Finding]) -> str:
    return json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False)
