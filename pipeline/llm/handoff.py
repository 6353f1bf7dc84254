"""Tickets: the right to put the state of one request into one place, once, within a time.

The destination writes a ticket when it reserves the place, and reads it when the state comes, so the two
workers share no key and no clock, and whoever asked for the hand-off names neither slot nor cache. The
other side can read what a ticket is bound to and refuses to send anything else's state with it.
"""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass, replace

from pipeline.clock import Clock
from pipeline.errors import HandoffRefusedError

_MAC = hashlib.sha256


@dataclass(frozen=True, slots=True)
class Binding:
    """What a ticket is good for, and nothing else."""

    request: str
    tenant: str
    destination: str
    """The worker."""
    slot: int
    release: str
    """Fingerprint."""
    expires: float
    """By the destination's clock, unless it is renewed."""

    def check(self, request: str, tenant: str, release: str) -> None:
        """Raises HandoffRefusedError, naming the first of the three that it is not bound to."""
        for field, presented in (("request", request), ("tenant", tenant), ("release", release)):
            if presented != (bound := getattr(self, field)):
                raise HandoffRefusedError(f"the ticket is for {field} {bound}, not for {presented}")


class TicketOffice:
    """A destination's. Its key never leaves it, and dies with it: no ticket outlives a worker."""

    def __init__(self, worker: str, clock: Clock) -> None:
        self._worker = worker
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._open: dict[str, Binding] = {}
        """Nonce → what it is bound to, until it is redeemed or void."""

    def issue(self, request: str, tenant: str, slot: int, release: str, seconds: float) -> str:
        """A ticket that is good for `seconds`."""
        self._forget_expired()
        binding = Binding(request, tenant, self._worker, slot, release, self._clock.now() + seconds)
        nonce = secrets.token_urlsafe(16)
        self._open[nonce] = binding
        claims = _encoded(json.dumps({"nonce": nonce, **asdict(binding)}, sort_keys=True).encode())
        return f"{claims}.{_encoded(self._mac(claims))}"

    def redeem(self, ticket: str, request: str, tenant: str, release: str) -> Binding:
        """What it is bound to; it is void from here on. Raises HandoffRefusedError, saying why."""
        claims, _, mac = ticket.partition(".")
        if not hmac.compare_digest(mac.encode(), _encoded(self._mac(claims)).encode()):
            raise HandoffRefusedError("the ticket was not written here")
        nonce = json.loads(_decoded(claims))["nonce"]
        binding = self._open.get(nonce)
        if binding is None:
            raise HandoffRefusedError("the ticket was used before, or its reservation is gone")
        if self._clock.now() > binding.expires:
            del self._open[nonce]
            raise HandoffRefusedError("the ticket has expired")
        binding.check(request, tenant, release)
        del self._open[nonce]
        return binding

    def renew(self, request: str, seconds: float) -> None:
        """Tickets of a request are good for so long from now on: its reservation was renewed."""
        expires = self._clock.now() + seconds
        for nonce, bound in self._open.items():
            if bound.request == request:
                self._open[nonce] = replace(bound, expires=expires)

    def void(self, request: str) -> None:
        """Tickets of a request whose reservation is given up."""
        self._open = {nonce: bound for nonce, bound in self._open.items() if bound.request != request}

    def _forget_expired(self) -> None:
        now = self._clock.now()
        self._open = {nonce: bound for nonce, bound in self._open.items() if bound.expires >= now}

    def _mac(self, claims: str) -> bytes:
        return hmac.new(self._key, claims.encode(), _MAC).digest()


def bound_to(ticket: str) -> Binding:
    """What a ticket says it is good for; only its writer can tell whether that is true.

    Raises HandoffRefusedError when it is no ticket.
    """
    try:
        claims = json.loads(_decoded(ticket.partition(".")[0]))
        del claims["nonce"]
        return Binding(**claims)
    except (ValueError, TypeError, KeyError) as error:
        raise HandoffRefusedError("this is no ticket") from error


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
