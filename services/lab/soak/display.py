"""Progress of a soak, for people at a terminal."""

from types import TracebackType
from typing import Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from services.lab.soak.findings import Record
from services.lab.soak.options import Options


class Display:
    """A bar with the figures so far, and a line for each turn that went wrong. `with` it."""

    def __init__(self, console: Console, options: Options) -> None:
        self._options = options
        self._waits: list[float] = []
        self._turns = 0
        self._failed = 0
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console)
        self._total = options.seconds or (options.turns or 0) * options.sessions
        self._task = self._progress.add_task(self._told(), total=self._total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def record(self, record: Record) -> None:
        """A turn is over."""
        self._turns += 1
        if record["failed"] is not None:
            self._failed += 1
            reason = f": {record['error']}" if record["error"] else ""
            line = f"user {record['user']}, {record['said']!r}: {record['failed']}{reason}"
            self._progress.console.print(line, markup=False, highlight=False)
        if record["time_to_first_audio_ms"] is not None:
            self._waits.append(record["time_to_first_audio_ms"])
        self._progress.update(self._task, description=self._told())
        if self._options.turns is not None:
            # One that was cut off makes several turns.
            self._progress.update(self._task, completed=min(self._turns, self._total))

    def elapsed(self, seconds: float) -> None:
        """Users have been talking for so long."""
        if self._options.seconds is not None:
            self._progress.update(self._task, completed=min(seconds, self._total))

    def _told(self) -> str:
        median = f", median {np.median(self._waits):.0f} ms" if self._waits else ""
        return f"{self._turns} turns, {self._failed} failed{median}"
