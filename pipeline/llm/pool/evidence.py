"""What shows how a turn went through a split engine: ids, digests, bytes, times, decisions and their reasons.

Never what was said: a prompt is its digest, a state its size and digest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Reached(StrEnum):
    """How far a turn came."""

    ROUTE = "route"
    QUEUE = "queue"
    """It asked for room."""
    PLACE = "place"
    """It has room, and asks for its place."""
    PREFILL = "prefill"
    TRANSFER = "transfer"
    ANSWER = "answer"


FINISHED, CANCELLED, BROKEN = "finished", "cancelled", "broken"
"""Outcomes; any other is the code of an error. BROKEN is by a fault of ours."""


@dataclass(slots=True)
class EvidenceLine:
    """One turn's. Times in ms; what did not happen is None."""

    request: str
    tenant: str
    contract: str
    prompt_digest: str
    """SHA-256 over the digests of its sections: the same whatever became of the route."""
    prompt_tokens: int
    unread_tokens: int
    """That were thought to have to be read."""
    way: str = ""
    """The way it was answered; see `routing.Way`."""
    why: str = ""
    fallback: str | None = None
    """Why it was not answered the way it had been sent."""
    admission: str | None = None
    predicted_first_token_ms: float | None = None
    queue_ms: float | None = None
    read_tokens: int | None = None
    read_ms: float | None = None
    release: str | None = None
    """Fingerprint that both workers attested."""
    kv_tokens: int | None = None
    kv_bytes: int | None = None
    kv_digest: str | None = None
    save_ms: float | None = None
    send_ms: float | None = None
    restore_ms: float | None = None
    used_tokens: int | None = None
    """That the engine says it took from its cache: near to `kv_tokens` if what moved was used."""
    reached: str = Reached.ROUTE
    outcome: str = BROKEN
    """Until it is known."""


Note = Callable[[EvidenceLine], None]
"""Keeps a line."""
