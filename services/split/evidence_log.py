"""Keeps the evidence of a split's turns as JSON lines, a bounded number of them."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

from pipeline.errors import ConfigError
from pipeline.llm.pool.evidence import EvidenceLine, Note

_log = logging.getLogger(__name__)

MOST_BYTES = 10_000_000
"""Of one file, some 15,000 turns."""

KEPT = 3
"""Older files, as path.1 and so on."""


class _Lines(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """A full disk costs evidence, not the conversation."""
        _log.exception("the evidence of a turn could not be kept in %s", self.baseFilename)


@dataclass(slots=True, kw_only=True)
class KeptLine(EvidenceLine):
    """A line as it is in the file."""

    at: str
    """When the turn was over or given up, RFC 3339."""
    schema_version: Literal[1]


@contextmanager
def evidence_log(path: Path) -> Iterator[Note]:
    """Keeps each line it is given. Raises ConfigError when the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = _Lines(path, maxBytes=MOST_BYTES, backupCount=KEPT, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"llm.split_log: expected a file that can be written, got {str(path)!r} ({error.strerror})"
        ) from error

    def note(line: EvidenceLine) -> None:
        kept = KeptLine(
            **asdict(line), schema_version=1, at=datetime.now(UTC).isoformat(timespec="milliseconds")
        )
        lines.emit(logging.makeLogRecord({"msg": json.dumps(asdict(kept))}))

    try:
        yield note
    finally:
        with suppress(OSError):  # told when it happened
            lines.close()
