"""Two gates in virtual time, over a llama.cpp that only keeps bytes; the real one is in test_split."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from pipeline.clock import VirtualClock
from pipeline.errors import AdmissionRefusedError, HandoffRefusedError
from pipeline.llm.contract import Attestation, KvFormat, ModelIdentity, Phase, Release
from services.engine.kv_gate import KvGate, make_app
from services.engine.reservations import Reservations

LEASE = 10.0

RELEASE = Release(ModelIdentity("w", "t", "c", None, "Q8_0", "r"), KvFormat("slot", 1, "f16", None, 512, 2))

STATE = b"state" * 500_000
"""More than is sent at a time."""


@dataclass
class Slots:
    """llama.cpp's, as far as a gate asks for them."""

    held: dict[int, bytes] = field(default_factory=dict)
    refuses: bool = False

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.refuses:
            return httpx.Response(500, json={"error": "busy"})
        slot = int(request.url.path.rpartition("/")[2])
        match request.url.params["action"]:
            case "erase":
                self.held.pop(slot, None)
            case "save":
                self._file(request).write_bytes(self.held[slot])
            case "restore":
                self.held[slot] = self._file(request).read_bytes()
        return httpx.Response(200, json={"n_restored": 7})

    def _file(self, request: httpx.Request) -> Path:
        name = httpx.Response(200, content=request.content).json()["filename"]
        return Path("/proc/self/fd") / name


class Pair:
    """A prefill worker whose slot 0 holds a prompt, and a decode worker with two empty slots."""

    def __init__(self, network: httpx.AsyncClient, release: Release = RELEASE) -> None:
        self.clock = VirtualClock()
        self.prefill_slots, self.decode_slots = Slots({0: STATE}), Slots()
        self.prefill = self._gate("prefill-1", Phase.PREFILL, self.prefill_slots, network, RELEASE)
        self.decode = self._gate("decode-1", Phase.DECODE, self.decode_slots, network, release)

    def _gate(
        self, name: str, phase: Phase, slots: Slots, network: httpx.AsyncClient, release: Release
    ) -> KvGate:
        engine = httpx.AsyncClient(transport=httpx.MockTransport(slots), base_url="http://engine")
        identity = Attestation(name, phase, str(phase), release)
        return KvGate(identity, engine, network, Reservations(2, self.clock, LEASE), self.clock, LEASE)

    @property
    def held(self) -> int:
        return self.decode.account()["held"]

    async def hand_off(self, request: str, ticket: str, tenant: str = "acme") -> int:
        sent = await self.prefill.hand_off(request, tenant, 0, ticket, "http://decode")
        return sent.bytes


@asynccontextmanager
async def paired(release: Release = RELEASE) -> AsyncIterator[Pair]:
    async with httpx.AsyncClient() as network:
        pair = Pair(network, release)
        network._transport = httpx.ASGITransport(make_app(pair.decode, "key"))
        reaping = asyncio.create_task(pair.decode.reap())
        try:
            yield pair
        finally:
            reaping.cancel()
            await asyncio.wait({reaping})


async def test_state_comes_to_its_place_and_is_gone_with_it() -> None:
    async with paired() as pair:
        place, ticket = pair.decode.reserve("r1", "acme")
        assert await pair.hand_off("r1", ticket) == len(STATE)
        assert pair.decode_slots.held == {place.slot: STATE}
        await pair.decode.free("r1")
        assert pair.decode_slots.held == {}
        assert pair.decode.account() == {"held": 0, "free": 2, "reaped": 0}


async def test_a_ticket_is_good_once() -> None:
    async with paired() as pair:
        _, ticket = pair.decode.reserve("r1", "acme")
        await pair.hand_off("r1", ticket)
        with pytest.raises(HandoffRefusedError, match="used before"):
            await pair.hand_off("r1", ticket)


@pytest.mark.parametrize(("request_id", "tenant"), [("r2", "acme"), ("r1", "other")])
async def test_the_sender_refuses_a_ticket_that_is_for_another(request_id: str, tenant: str) -> None:
    async with paired() as pair:
        _, ticket = pair.decode.reserve("r1", "acme")
        with pytest.raises(HandoffRefusedError, match="the ticket is for"):
            await pair.hand_off(request_id, ticket, tenant)
        assert pair.decode_slots.held == {}


async def test_no_state_goes_to_another_release() -> None:
    other = Release(ModelIdentity("other", "t", "c", None, "Q8_0", "r"), RELEASE.kv)
    async with paired(other) as pair:
        _, ticket = pair.decode.reserve("r1", "acme")
        with pytest.raises(HandoffRefusedError, match="the ticket is for release"):
            await pair.hand_off("r1", ticket)


async def test_a_place_that_nobody_asks_for_is_freed_and_counted() -> None:
    async with paired() as pair:
        pair.decode.reserve("r1", "acme")
        await pair.clock.advance(LEASE * 1.5)
        assert pair.decode.account() == {"held": 0, "free": 2, "reaped": 1}


async def test_a_heartbeat_keeps_a_place_and_its_ticket() -> None:
    async with paired() as pair:
        _, ticket = pair.decode.reserve("r1", "acme")
        for _ in range(5):
            await pair.clock.advance(LEASE / 2)
            pair.decode.renew("r1")
        assert pair.held == 1
        assert await pair.hand_off("r1", ticket) == len(STATE)


async def test_a_cancel_that_overtakes_its_reservation_is_remembered() -> None:
    async with paired() as pair:
        await pair.decode.free("r1")
        with pytest.raises(HandoffRefusedError, match="r1 was given up"):
            pair.decode.reserve("r1", "acme")


async def test_when_every_slot_is_taken_the_next_is_refused() -> None:
    async with paired() as pair:
        pair.decode.reserve("r1", "acme")
        pair.decode.reserve("r2", "acme")
        with pytest.raises(AdmissionRefusedError, match="all 2 slots are taken"):
            pair.decode.reserve("r3", "acme")


async def test_a_slot_that_cannot_be_emptied_is_nobodys_until_it_is() -> None:
    async with paired() as pair:
        _, ticket = pair.decode.reserve("r1", "acme")
        await pair.hand_off("r1", ticket)
        pair.decode_slots.refuses = True
        await pair.decode.free("r1")
        assert pair.decode.account() == {"held": 0, "free": 1, "reaped": 0}
        pair.decode_slots.refuses = False
        await pair.clock.advance(LEASE)
        assert pair.decode.account() == {"held": 0, "free": 2, "reaped": 0}
        assert pair.decode_slots.held == {}


@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Ticket anything"])
async def test_nobody_gets_in_without_the_key(authorization: str) -> None:
    async with paired() as pair:
        headers = {"Authorization": authorization}
        transport = httpx.ASGITransport(make_app(pair.decode, "key"))
        async with httpx.AsyncClient(transport=transport, base_url="http://decode", headers=headers) as http:
            for method, path in (("GET", "/identity"), ("POST", "/places"), ("POST", "/handoffs")):
                assert (await http.request(method, path)).status_code == 401
            assert (await http.put("/state/r1", content=b"state")).status_code in (401, 403)


@pytest.mark.parametrize("wrong", ["digest", "part"])
async def test_what_is_not_all_or_not_the_same_is_not_restored(wrong: str) -> None:
    async with paired() as pair:
        _, ticket = pair.decode.reserve("r1", "acme")
        headers = {
            "Authorization": f"Ticket {ticket}",
            "X-Tenant": "acme",
            "X-Release": RELEASE.fingerprint,
            "X-Digest": "0" * 64,
        }
        transport = httpx.ASGITransport(make_app(pair.decode, "key"))
        async with httpx.AsyncClient(transport=transport, base_url="http://decode") as http:
            content = STATE if wrong == "digest" else STATE[:1000]
            answer = await http.put("/state/r1", content=content, headers=headers)
        assert (answer.status_code, pair.decode_slots.held) == (403, {})
        assert "not what was sent" in answer.json()["error"]
