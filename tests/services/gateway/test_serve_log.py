"""What the server's log lets through, in a process of its own: logging is set up once in each."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from services.gateway.serve import _log_to_stderr
_log_to_stderr(sys.argv[1])
import logging
import bm25s  # as a server with evidence does: after its log is set up
logging.getLogger("bm25s").debug("ranking")
logging.getLogger("services.engine.worker_process").debug("slot operator")
logging.getLogger("services.stack").info("started")
"""


@pytest.mark.parametrize(
    ("level", "seen"), [("INFO", {"started"}), ("DEBUG", {"ranking", "slot operator", "started"})]
)
def test_no_library_is_louder_than_the_operator_wants(level: str, seen: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, level], capture_output=True, text=True, check=True, timeout=60
    )
    lines = {words for words in ("ranking", "slot operator", "started") if words in done.stderr}
    assert lines == seen
