"""Work that may wait for what is heard and seen."""

import os
import sys
import threading

_STEP = 5
"""By which the niceness of its threads rises; those of the event loop, the drawing and the encoders keep
theirs. On two cores the others then get about a quarter of one that both want, and all of it while nobody
else wants it. Gaps in replies to four callers: without, 226 in 32 turns, the longest of 160 ms; with 5, 6 in
16 turns (80 ms) and 17 in 11 (100 ms); with 10, 11 in 16 (331 ms). These were short runs, so the value is a
guess: that a thread kept from running may hold the interpreter's lock speaks against a higher one."""

_LOWEST = 19


def step_back() -> None:
    """Lower the priority of the calling thread, and of those that it starts. Elsewhere than on Linux, where
    threads have none of their own, it does nothing."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        niceness = min(_LOWEST, os.getpriority(os.PRIO_PROCESS, thread) + _STEP)
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
