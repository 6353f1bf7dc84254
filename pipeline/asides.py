"""Work beside the turns of a conversation, which ends with it: greeting, warming, glimpses, fillers."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Asides:
    """Tasks of the session's scope that nobody waits for."""

    def __init__(self, scope: asyncio.TaskGroup) -> None:
        self._scope = scope
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_work: asyncio.Task[None] | None = None

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._scope.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def begin_idle(self, work: Coroutine[Any, Any, None]) -> None:
        """Work for a time when nobody waits, in place of what was begun like this before."""
        self.stop_idle()
        self._idle_work = self.begin(work)

    def stop_idle(self) -> None:
        if self._idle_work is not None:
            self._idle_work.cancel()

    def cancel(self) -> None:
        """All of them."""
        for task in self._tasks:
            task.cancel()
