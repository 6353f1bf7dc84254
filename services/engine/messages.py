"""What the engine's parent and its worker process tell each other, each as one line of JSON."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a worker is there for."""

    COLOCATED = "colocated"
    """It reads prompts and writes replies."""
    PREFILL = "prefill"
    """It reads prompts, and sends what it has read to a decode worker."""
    DECODE = "decode"
    """It writes replies to what it was sent; a short prompt it can read by itself."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Parent → worker, on standard input: what to serve."""

    model_path: str
    api_key: str
    """Asked of every request. Handed over here because arguments and environment can be read from outside."""
    slots: int
    """Conversations that can have their cache in the engine at once."""
    context: int
    """Tokens per slot."""
    threads: int
    """For prefill and decode alike."""
    role: Role = Role.COLOCATED
    name: str = "engine"
    """Of the worker, among all of its pools."""
    lease: float = 10.0
    """Seconds that a decode worker keeps a place for a request nobody asks for."""
    core: int | None = None
    """The processor that it keeps to."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Worker → parent, on standard output, once: it serves."""

    url: str
    pid: int
    gate: str | None = None
    """Address of its `KvGate`; None for a worker that does it all."""
