"""Tests that measure time on a machine that others use too."""

import functools
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

_P = ParamSpec("_P")

_EVERY = 0.005
_STUTTER = 0.04
"""Seconds by which a thread that only sleeps is woken late: the machine did not get round to it."""

_TRIES = 4


class Heartbeat(threading.Thread):
    """Sleeps, and notes how late it is woken."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="heartbeat")
        self.worst = 0.0
        self._over = threading.Event()

    def run(self) -> None:
        before = time.monotonic()
        while not self._over.wait(_EVERY):
            now = time.monotonic()
            self.worst = max(self.worst, now - before - _EVERY)
            before = now

    def stop(self) -> None:
        self._over.set()
        self.join()


@contextmanager
def heartbeat() -> Iterator[Heartbeat]:
    beating = Heartbeat()
    beating.start()
    try:
        yield beating
    finally:
        beating.stop()


def on_a_steady_machine(test: Callable[_P, Awaitable[None]]) -> Callable[_P, Awaitable[None]]:
    """Take a test that failed once more if the machine stuttered meanwhile: it may have measured that.

    On a machine that does not, a failure is one at once.
    """

    @functools.wraps(test)
    async def taken(*parts: _P.args, **named: _P.kwargs) -> None:
        for left in reversed(range(_TRIES)):
            with heartbeat() as beating:
                try:
                    await test(*parts, **named)
                except (AssertionError, ValueError):
                    if not left or beating.worst < _STUTTER:
                        raise
                else:
                    return

    return taken
