"""The machine a benchmark ran on, and what the server took of it."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil


def machine() -> dict[str, Any]:
    """Processor, cores, memory and versions, for the history."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a server and all its children, and this process, had used at a moment."""

    at: float
    server_cpu_s: float
    client_cpu_s: float
    rss_mb: float
    threads: int
    descriptors: int


class ServerProcesses:
    """The server that listens at an address of this machine; elsewhere, or another user's, it is unseen."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        self._server = _listener(port) if parts.hostname in ("127.0.0.1", "localhost", "::1") else None

    @property
    def pid(self) -> int | None:
        """The process that listens; None where it cannot be seen."""
        return None if self._server is None else self._server.pid

    def usage(self, now: float) -> Usage | None:
        """None when the server cannot be seen, or has ended."""
        if self._server is None:
            return None
        cpu, rss, threads, descriptors = 0.0, 0, 0, 0
        try:
            processes = [self._server, *self._server.children(recursive=True)]
            for process in processes:
                with process.oneshot():
                    times = process.cpu_times()
                    cpu += times.user + times.system
                    rss += process.memory_info().rss
                    threads += process.num_threads()
                    descriptors += process.num_fds()
        except psutil.Error:
            return None
        own = os.times()
        return Usage(now, cpu, own.user + own.system, round(rss / 1e6, 1), threads, descriptors)


def _listener(port: int) -> psutil.Process | None:
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return None
    for connection in connections:
        if connection.status != psutil.CONN_LISTEN or connection.pid is None or not connection.laddr:
            continue
        if connection.laddr.port == port:
            return psutil.Process(connection.pid)
    return None


def shares(first: Usage | None, last: Usage | None) -> dict[str, float | None]:
    """Cores used between two moments by the server and by the caller's process."""
    if first is None or last is None or last.at <= first.at:
        return {"server_cores": None, "client_cores": None}
    seconds = last.at - first.at
    return {
        "server_cores": round((last.server_cpu_s - first.server_cpu_s) / seconds, 3),
        "client_cores": round((last.client_cpu_s - first.client_cpu_s) / seconds, 3),
    }
