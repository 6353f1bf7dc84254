"""A relay with real sockets: what it makes of SDP, and that calls go through it and nowhere else."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from pipeline.clock import Clock, MonotonicClock, VirtualClock
from pipeline.webrtc.tuning.loopback import offer_loopback
from services.lab.network.profiles import Profile
from services.lab.network.relay import Address, Direction, Relay
from services.lab.synthetic_user import CallError, calling
from tests.browser.fake_server import fake_server

offer_loopback()

IPV6_AND_TCP = [
    "a=candidate:2 1 udp 1 fe80::1 5000 typ host",
    "a=candidate:3 1 tcp 1 127.0.0.1 5001 typ host tcptype active",
]


def sdp(*candidates: str) -> str:
    return "\r\n".join(["v=0", "m=audio 9 UDP/TLS/RTP/SAVPF 96", *candidates, "a=end-of-candidates", ""])


def candidate(address: Address) -> str:
    return f"a=candidate:1 1 udp 2130706431 {address[0]} {address[1]} typ host generation 0"


def addresses(text: str) -> list[Address]:
    fields = [line.split() for line in text.splitlines() if line.startswith("a=candidate")]
    return [(each[4], int(each[5])) for each in fields]


class End(asyncio.DatagramProtocol):
    """A socket of this machine, and what it received."""

    transport: asyncio.DatagramTransport

    def __init__(self) -> None:
        self.received: asyncio.Queue[tuple[bytes, Any]] = asyncio.Queue()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.received.put_nowait((data, addr))

    @property
    def address(self) -> Address:
        host, port = self.transport.get_extra_info("sockname")
        return host, port


@pytest.fixture
async def ends() -> AsyncIterator[tuple[End, End]]:
    """A user and a server."""
    loop = asyncio.get_running_loop()
    pair = [(await loop.create_datagram_endpoint(End, local_addr=("127.0.0.1", 0)))[1] for _ in range(2)]
    yield pair[0], pair[1]
    for end in pair:
        end.transport.close()


class TellingClock(VirtualClock):
    """Tells when somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = asyncio.Event()

    async def sleep_until(self, deadline: float) -> None:
        self.awaited.set()
        await super().sleep_until(deadline)


async def opened(relay: Relay, server: End) -> Address:
    (near,) = addresses(await relay.answer(sdp(candidate(server.address))))
    return near


async def test_an_offer_loses_its_addresses_and_nothing_else() -> None:
    async with Relay(Profile(), MonotonicClock()) as relay:
        assert relay.offer(sdp(candidate(("10.0.0.1", 5000)), *IPV6_AND_TCP)).splitlines() == [
            "v=0",
            "m=audio 9 UDP/TLS/RTP/SAVPF 96",
        ]


async def test_an_answers_addresses_become_the_relays(ends: tuple[End, End]) -> None:
    _, server = ends
    async with Relay(Profile(), MonotonicClock()) as relay:
        # Bundled media repeat the same address.
        same = candidate(server.address)
        answer = await relay.answer(sdp(same, *IPV6_AND_TCP, same))
        near, again = addresses(answer)
        assert near == again != server.address
        assert near[0] == "127.0.0.1"
        assert answer.splitlines()[-1] == "a=end-of-candidates"
        assert "typ host generation 0" in answer


async def test_an_answer_without_an_address_to_reach_is_told() -> None:
    async with Relay(Profile(), MonotonicClock()) as relay:
        with pytest.raises(CallError, match="no IPv4 address"):
            await relay.answer(sdp(*IPV6_AND_TCP))


async def test_packets_pass_unchanged_both_ways(ends: tuple[End, End]) -> None:
    user, server = ends
    async with Relay(Profile(), MonotonicClock()) as relay:
        near = await opened(relay, server)
        for text in (b"one", b"two"):
            user.transport.sendto(text, near)
            data, sender = await server.received.get()
            assert data == text
            assert sender != user.address
            server.transport.sendto(data.upper(), sender)
            assert await user.received.get() == (text.upper(), near)
        assert relay.counts() == {"up": {"carried": 2, "lost": 0}, "down": {"carried": 2, "lost": 0}}


async def test_a_blocked_direction_loses_and_the_other_does_not(ends: tuple[End, End]) -> None:
    user, server = ends
    async with Relay(Profile(), clock := VirtualClock()) as relay:
        near = await opened(relay, server)
        user.transport.sendto(b"who", near)
        _, sender = await server.received.get()
        relay.block(1.0, Direction.DOWN)
        server.transport.sendto(b"lost", sender)
        user.transport.sendto(b"heard", near)
        assert (await server.received.get())[0] == b"heard"
        await clock.advance(1.0)
        server.transport.sendto(b"found", sender)
        assert (await user.received.get())[0] == b"found"
        assert relay.counts()["down"] == {"carried": 1, "lost": 1}


async def test_late_packets_wait_for_their_time_in_order(ends: tuple[End, End]) -> None:
    user, server = ends
    async with Relay(Profile(delay=0.5), clock := TellingClock()) as relay:
        near = await opened(relay, server)
        relay.delay(0.5, 0.1)
        user.transport.sendto(b"late", near)
        await clock.awaited.wait()
        await clock.advance(0.9)
        assert server.received.empty()
        clock.awaited.clear()
        user.transport.sendto(b"behind", near)
        await clock.advance(0.1)
        assert (await server.received.get())[0] == b"late"
        await clock.awaited.wait()
        await clock.advance(0.5)
        assert (await server.received.get())[0] == b"behind"


async def test_the_last_packet_comes_out_even_if_it_is_late(ends: tuple[End, End]) -> None:
    user, server = ends
    async with Relay(Profile(delay=60.0), MonotonicClock()) as relay:
        near = await opened(relay, server)
        user.transport.sendto(b"goodbye", near)
    assert (await server.received.get())[0] == b"goodbye"


def nominated(connection: RTCPeerConnection) -> Any:
    assert connection.sctp is not None
    ice: Any = connection.sctp.transport.transport._connection
    return ice._nominated[1].remote_candidate


@pytest.mark.loopback
async def test_both_ice_agents_know_each_other_only_through_the_relay() -> None:
    user, server = (RTCPeerConnection(RTCConfiguration(iceServers=[])) for _ in range(2))
    heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server.on("datachannel", lambda channel: channel.on("message", heard.set_result))
    channel = user.createDataChannel("chat")
    channel.on("open", lambda: channel.send("through"))
    async with Relay(Profile(), MonotonicClock()) as relay:
        await user.setLocalDescription(await user.createOffer())
        offer = relay.offer(user.localDescription.sdp)
        await server.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await server.setLocalDescription(await server.createAnswer())
        answer = await relay.answer(server.localDescription.sdp)
        await user.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        async with asyncio.timeout(15):
            assert await heard == "through"
        told = nominated(user)
        assert (told.host, told.port) in addresses(answer)
        assert nominated(server).type == "prflx"
        assert (nominated(server).host, nominated(server).port) not in addresses(user.localDescription.sdp)
        await user.close()
        await server.close()


@pytest.mark.loopback
async def test_a_synthetic_user_calls_through_a_relay() -> None:
    clock: Clock = MonotonicClock()
    before = asyncio.all_tasks()
    async with fake_server() as server, Relay(Profile(delay=0.02), clock) as relay:
        async with asyncio.timeout(20), calling(server.url.rstrip("/"), clock, way=relay) as user:
            session = await server.session()
            session.state(user="speaking")
            told = await user.until(lambda told: told.type == "visavis.state")
            assert told.data["user"] == "speaking"
        counts = relay.counts()
        assert min(counts["up"]["carried"], counts["down"]["carried"]) > 10
    assert asyncio.all_tasks() == before
