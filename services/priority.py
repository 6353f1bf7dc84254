"""Work that may wait for what is heard and seen."""

import os
import sys
import threading

MODELS = 8
"""By which the niceness of their threads rises; that of the event loop, which sends the sound, keeps its own.
On two cores the others then get about a seventh of one that both want, and all of it while nobody else wants
it. Gaps in replies to four callers: without, 226 in 32 turns; with 5, and with what serve.py and tracks.py do
for several calls, 1 of the loop's in 40 turns, and 6 freezes; with 8 none of either in 39."""

PICTURES = 2
"""The same for drawing and encoding the face: a late picture is seen less than a late sound is heard."""

_LOWEST = 19


def step_back(by: int = MODELS) -> None:
    """Lower the priority of the calling thread, and of those that it starts. Elsewhere than on Linux, where
    threads have none of their own, it does nothing."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        niceness = min(_LOWEST, os.getpriority(os.PRIO_PROCESS, thread) + by)
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
