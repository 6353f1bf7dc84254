import sys
from collections.abc import Callable

import pytest

from services.engine import worker_process
from services.engine.model_file import shipped_model
from services.engine.supervisor import EngineSettings


@pytest.fixture
def settings() -> EngineSettings:
    return EngineSettings(shipped_model(), slots=2, context=512)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has a few lines of Python run in the worker's place; `ready()` in them prints what it would."""

    def use(lines: str) -> None:
        ready = "print(json.dumps(dict(url='http://127.0.0.1:9', pid=os.getpid())), flush=True)"
        program = f"import json, os, signal, sys, time\ndef ready(): {ready}\n{lines}"
        monkeypatch.setattr(worker_process, "COMMAND", (sys.executable, "-c", program))

    return use
