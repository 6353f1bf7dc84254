"""What the engine's parent and its worker process tell each other, each as one line of JSON."""

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Ready:
    """Worker → parent, on standard output, once: it serves."""

    url: str
    pid: int
