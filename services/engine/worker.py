"""The embedded engine: one process that runs llama.cpp's server on a loopback port, and the gate beside it
where the engine is split.

    python -P -m services.engine.worker

It reads `WorkerSettings` from standard input, writes `Ready` to standard output once it serves, and logs
to standard error. It ends on SIGTERM, and when standard input reaches its end, which the kernel sees to
however the parent dies (PR_SET_PDEATHSIG would follow the thread that started it, not the process).
"""

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from types import FrameType

import xllamacpp

from services.engine import slot_files
from services.engine.gate_server import serve_gate
from services.engine.messages import Ready, Role, WorkerSettings
from services.priority import step_back

SLOT_FILES_NOWHERE = "/dev/null/"
"""llama.cpp erases a slot only when it has a folder to save slots in; here nothing can be saved."""

PREFILL_BATCH = 128
"""Tokens prefilled between two looks at the request queue: what a cancel or another session's next
token waits for. On one thread 512 tokens take 1.83 s at 128 a batch, 1.79 s at 512, 1.97 s at 64."""


def engine_params(settings: WorkerSettings) -> xllamacpp.CommonParams:
    """Parameters under which no prompt's cache is ever shared and no thread spins when idle."""
    params = xllamacpp.CommonParams()
    params.model.path = settings.model_path
    params.offline = True
    params.n_parallel = settings.slots
    params.n_ctx = settings.slots * settings.context
    params.kv_unified = False
    params.n_batch = params.n_ubatch = PREFILL_BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.slot_prompt_similarity = 0.0
    params.slot_save_path = SLOT_FILES_NOWHERE if settings.role is Role.COLOCATED else slot_files.FOLDER
    params.endpoint_slots = params.endpoint_metrics = True
    params.ui = False
    params.use_jinja = True
    params.warmup = True
    params.verbosity = 2  # errors and warnings; never a prompt
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # A stream holds a thread until it ends, and so does whoever waits for a busy slot.
    params.n_threads_http = 2 * settings.slots + 4
    params.api_keys = [settings.api_key]
    return params


def main() -> None:
    # What the native code prints must not look like our one line: it goes to standard error.
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    # Ctrl-C reaches every process of the terminal; only the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    line = sys.stdin.readline()
    if not line:
        return
    told = json.loads(line)
    settings = WorkerSettings(**{**told, "role": Role(told["role"])})
    step_back()
    if settings.core is not None:
        os.sched_setaffinity(0, {settings.core})

    def wait_for_parent() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=wait_for_parent, name="parent", daemon=True).start()
    server = xllamacpp.Server(engine_params(settings))

    def tell(gate: str | None = None) -> None:
        ready = Ready(server.listening_address, os.getpid(), gate)
        answer.write(json.dumps(asdict(ready)) + "\n")
        answer.close()

    if settings.role is Role.COLOCATED:
        tell()
    else:
        serving = threading.Thread(
            target=serve_gate, args=(server.listening_address, settings, tell), name="gate", daemon=True
        )
        serving.start()
    stopping.wait()
    # The server's destructor waits up to 30 s for open streams; there is nothing in here to save.
    os._exit(0)


if __name__ == "__main__":
    main()
