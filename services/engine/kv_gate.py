"""What a worker of a split offers beside llama.cpp's own server: places, and state that moves between them.

    GET    /identity                      what this worker is (`Attestation` of pipeline/llm/contract.py)
    GET    /places                        → 200 {held, free, reaped}
    POST   /places {request, tenant}      → 201 {ticket, slot}; 503 when every slot is taken
    POST   /places/{request}/heartbeat    → 204; 410 when it was given up
    DELETE /places/{request}              → 204, and the slot is empty; also when it was given back before
    POST   /handoffs {request, tenant, slot, ticket, to}
                                          → 200 `Sent`: a slot's state is there
    PUT    /state/{request}               with ticket and digest, a slot's state → 200 {tokens, restore_ms}

The state is transient and sensitive: it crosses only to a place that was reserved for this request, with the
place's own ticket, is restored only when all of it has come and its digest is right, and is nowhere on disk.
"""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pipeline.clock import Clock
from pipeline.errors import AdmissionRefusedError, HandoffRefusedError, VisavisError
from pipeline.llm.contract import Attestation
from pipeline.llm.handoff import TicketOffice, bound_to
from services.engine.reservations import Place, PlaceState, Reservations
from services.engine.slot_files import SlotFile, slot_file

_log = logging.getLogger(__name__)

MOST_BYTES = 1 << 30
"""Of one slot's state; 2,048 tokens of SmolLM2-135M are 47 MB."""

_STATUS: dict[type[VisavisError], int] = {AdmissionRefusedError: 503, HandoffRefusedError: 403}


@dataclass(frozen=True, slots=True)
class Sent:
    """A hand-off as the sender saw it. Times in ms."""

    bytes: int
    digest: str
    release: str
    """Fingerprint."""
    tokens: int
    save_ms: float
    send_ms: float
    restore_ms: float


class KvGate:
    """One worker's."""

    def __init__(
        self,
        identity: Attestation,
        engine: httpx.AsyncClient,
        network: httpx.AsyncClient,
        reservations: Reservations,
        clock: Clock,
        lease: float,
    ) -> None:
        """`engine` reaches this worker's llama.cpp, `network` other workers' gates."""
        self.identity = identity
        self._engine = engine
        self._network = network
        self._reservations = reservations
        self._clock = clock
        self._lease = lease
        self._office = TicketOffice(identity.worker, clock)
        self._unclean: list[Place] = []
        """Given back, but their slots are not empty yet."""
        self.reaped = 0
        """Places that nobody asked for any more."""

    async def reap(self) -> None:
        """Free places whose lease has run out, until cancelled."""
        while True:
            await self._clock.sleep_until(self._clock.now() + self._lease / 4)
            for place in list(self._unclean):
                await self._clear(place)
            for request in self._reservations.overdue():
                _log.warning("nobody asked for the place of request %s any more: it is free again", request)
                self.reaped += 1
                await self.free(request)

    def reserve(self, request: str, tenant: str) -> tuple[Place, str]:
        """A place and its ticket. Raises AdmissionRefusedError, HandoffRefusedError."""
        place = self._reservations.reserve(request, tenant)
        release = self.identity.release.fingerprint
        return place, self._office.issue(request, tenant, place.slot, release, self._lease)

    def renew(self, request: str) -> None:
        """Somebody still asks for a place. Raises HandoffRefusedError: it was given up."""
        self._reservations.renew(request)
        self._office.renew(request, self._lease)

    def account(self) -> dict[str, int]:
        """How many places are held and free, and how many nobody had asked for any more."""
        return {"held": self._reservations.held, "free": self._reservations.free, "reaped": self.reaped}

    async def free(self, request: str) -> None:
        """Give a place back, empty. A second time is none."""
        self._office.void(request)
        place = self._reservations.take_back(request)
        if place is not None:
            self._unclean.append(place)
            await self._clear(place)

    async def _clear(self, place: Place) -> None:
        """Empty a slot that belongs to nobody; it is not had again before that has succeeded."""
        try:
            # It waits until the slot is idle, so that a cancelled request's last batch is not in it.
            await self._slot(place.slot, "erase")
        except (httpx.HTTPError, HandoffRefusedError) as error:
            _log.warning("slot %d is not empty and stays unused for now: %r", place.slot, error)
        else:
            if place in self._unclean:  # not cleared by another meanwhile
                self._unclean.remove(place)
                self._reservations.cleared(place)

    async def hand_off(self, request: str, tenant: str, slot: int, ticket: str, to: str) -> Sent:
        """Send a slot's state to where a ticket is for. Raises HandoffRefusedError, httpx.HTTPError."""
        bound = bound_to(ticket)
        release = self.identity.release.fingerprint
        bound.check(request, tenant, release)
        with slot_file() as file:
            begun = self._clock.now()
            await self._slot(slot, "save", file)
            saved = self._clock.now()
            digest = await asyncio.to_thread(file.digest)
            headers = {
                "Authorization": f"Ticket {ticket}",
                "X-Tenant": tenant,
                "X-Release": release,
                "X-Digest": digest,
                "Content-Length": str(file.size),
            }
            answer = await self._network.put(f"{to}/state/{request}", content=_chunks(file), headers=headers)
            if answer.status_code != 200:
                raise HandoffRefusedError(f"{bound.destination} refused the state: {_reason(answer)}")
            sent = self._clock.now()
            restored = answer.json()
            return Sent(
                file.size,
                digest,
                release,
                restored["tokens"],
                (saved - begun) * 1000,
                (sent - saved) * 1000 - restored["restore_ms"],
                restored["restore_ms"],
            )

    async def take_in(self, request: Request) -> Any:
        """Restore what comes with a ticket into its place. Raises HandoffRefusedError."""
        name, ticket = request.path_params["request"], _ticket(request)
        tenant, release = request.headers.get("x-tenant", ""), request.headers.get("x-release", "")
        bound = self._office.redeem(ticket, name, tenant, release)
        place = self._reservations.place(name)
        place.become(PlaceState.FILLING)
        with slot_file() as file:
            async for piece in request.stream():
                if file.size + len(piece) > MOST_BYTES:
                    raise HandoffRefusedError(f"more than {MOST_BYTES} bytes of state")
                file.append(piece)
            digest = await asyncio.to_thread(file.digest)
            if digest != request.headers.get("x-digest"):
                raise HandoffRefusedError(f"the state is not what was sent: its digest is {digest}")
            # It may have been given up meanwhile: then the slot is somebody else's.
            if self._reservations.place(name) is not place:
                raise HandoffRefusedError(f"the place of request {name} was given up")
            begun = self._clock.now()
            restored = await self._slot(bound.slot, "restore", file)
            place.become(PlaceState.FILLED)
            return {"tokens": restored["n_restored"], "restore_ms": (self._clock.now() - begun) * 1000}

    async def _slot(self, slot: int, action: str, file: SlotFile | None = None) -> Any:
        answer = await self._engine.post(
            f"/slots/{slot}", params={"action": action}, json={"filename": file.name} if file else None
        )
        if answer.status_code != 200:
            raise HandoffRefusedError(f"llama.cpp would not {action} slot {slot}: {_reason(answer)}")
        return answer.json()


async def _chunks(file: SlotFile) -> AsyncIterator[bytes]:
    for chunk in file.chunks():
        yield chunk


def make_app(gate: KvGate, api_key: str) -> Starlette:
    """The gate as an ASGI application. All but /state, which asks for a ticket, ask for the worker's key."""

    async def who(request: Request) -> Response:
        return JSONResponse(asdict(gate.identity) | {"probed": sorted(gate.identity.probed)})

    async def reserve(request: Request) -> Response:
        body = await request.json()
        place, ticket = gate.reserve(str(body["request"]), str(body["tenant"]))
        return JSONResponse({"ticket": ticket, "slot": place.slot}, status_code=201)

    async def places(request: Request) -> Response:
        return JSONResponse(gate.account())

    async def heartbeat(request: Request) -> Response:
        try:
            gate.renew(request.path_params["request"])
        except HandoffRefusedError as error:
            return _refusal(error, 410)
        return Response(status_code=204)

    async def free(request: Request) -> Response:
        await gate.free(request.path_params["request"])
        return Response(status_code=204)

    async def hand_off(request: Request) -> Response:
        body = await request.json()
        sent = await gate.hand_off(
            str(body["request"]), str(body["tenant"]), int(body["slot"]), str(body["ticket"]), str(body["to"])
        )
        return JSONResponse(asdict(sent))

    async def take_in(request: Request) -> Response:
        return JSONResponse(await gate.take_in(request))

    return Starlette(
        routes=[
            Route("/identity", _told(who)),
            Route("/places", _told(places)),
            Route("/places", _told(reserve), methods=["POST"]),
            Route("/places/{request}/heartbeat", _told(heartbeat), methods=["POST"]),
            Route("/places/{request}", _told(free), methods=["DELETE"]),
            Route("/handoffs", _told(hand_off), methods=["POST"]),
            Route("/state/{request}", _told(take_in), methods=["PUT"]),
        ],
        middleware=[Middleware(_Guard, api_key=api_key)],
    )


class _Guard:
    """Nobody gets in without the worker's key, but with a ticket to where tickets count."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app = app
        self._wanted = f"Bearer {api_key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        by_ticket = scope.get("path", "").startswith("/state/") and given.startswith(b"Ticket ")
        if scope["type"] == "http" and not by_ticket and not hmac.compare_digest(given, self._wanted):
            await JSONResponse({"error": "the key is missing or wrong"}, 401)(scope, receive, send)
            return
        await self._app(scope, receive, send)


Handler = Callable[[Request], Awaitable[Response]]


def _told(handler: Handler) -> Handler:
    """Errors as answers that say what is wrong."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except (KeyError, ValueError, TypeError) as error:
            return JSONResponse({"error": f"the request's body is not as expected: {error!r}"}, 400)
        except VisavisError as error:
            return _refusal(error, _STATUS.get(type(error), 409))
        except httpx.HTTPError as error:
            return JSONResponse({"error": f"the other side did not answer: {error!r}"}, 502)

    return handle


def _refusal(error: VisavisError, status: int) -> Response:
    return JSONResponse({"error": str(error), "code": error.code}, status)


def _ticket(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Ticket ")


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])[:200]
    except (ValueError, LookupError, TypeError):
        return f"HTTP {answer.status_code}"
