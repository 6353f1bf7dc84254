"""Work that may wait for what is heard and seen."""

import os
import threading

_NICENESS = 5
"""Of its threads; those of the event loop, the drawing and the encoders keep 0. On two cores the others
then get about a quarter of one that both want, and all of it while nobody else wants it. More would let a
thread that holds the interpreter's lock be kept from running, and the event loop with it: of four callers'
replies at 0, 5 and 10, 32, 16 and 16 turns had 226, 6 and 11 gaps, the longest of 160, 80 and 331 ms."""


def step_back() -> None:
    """Lower the priority of the calling thread, and of those that it starts, where the system can."""
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
