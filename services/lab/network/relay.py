"""A UDP relay between the two ICE agents of a call, through which all of it goes.

To the server the user has no address: its candidates are taken out of the offer, and the server learns of
the relay as a peer-reflexive candidate when the user's checks come through it (RFC 8445, 7.3.1.3). To the
user the server's addresses are the relay's: the answer's are replaced. STUN, DTLS and RTP pass unchanged.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, cast

import numpy as np

from pipeline.clock import Clock
from pipeline.webrtc.tuning.loopback import LOOPBACK
from services.lab.network.link import Link
from services.lab.network.profiles import Profile
from services.lab.synthetic_user import CallError

_CANDIDATE = "a=candidate:"
_END = "a=end-of-candidates"

_MOST_UNDER_WAY = 10_000
"""Packets of one direction; more are dropped."""

_BUFFER_BYTES = 1 << 20
"""Of a socket: a key frame comes in one burst."""

Address = tuple[str, int]


class Direction(StrEnum):
    UP = "up"
    """From the user to the server."""
    DOWN = "down"


class Relay:
    """`async with Relay(profile, clock, seed) as relay:` carries one call, both directions by one profile.

    It is a `services.lab.synthetic_user.Way`; who negotiates without that passes his offer through `offer`
    and its answer through `answer`.
    """

    def __init__(self, profile: Profile, clock: Clock, seed: int = 0) -> None:
        self._lanes = {
            direction: _Lane(Link(profile, clock, np.random.default_rng((seed, number))), clock)
            for number, direction in enumerate(Direction)
        }
        self._doors: list[_Door] = []
        self._carrying: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._carrying = [asyncio.create_task(lane.carry()) for lane in self._lanes.values()]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What is still under way comes out now: a user's last packet tells the server that it hangs up."""
        for _ in range(2):
            await asyncio.sleep(0)  # the loop reads what lies at our sockets, and then it is on the way
        for task in self._carrying:
            task.cancel()
        await asyncio.wait(self._carrying)
        for lane in self._lanes.values():
            lane.hurry()
        for door in self._doors:
            await door.close()

    def offer(self, sdp: str) -> str:
        """The user's offer as the server is to see it: with no address that leads past the relay."""
        return _joined(line for line in sdp.splitlines() if not line.startswith((_CANDIDATE, _END)))

    async def answer(self, sdp: str) -> str:
        """The server's answer as the user is to see it. Raises CallError when it has no address to reach."""
        doors: dict[Address, _Door] = {}
        lines = []
        for line in sdp.splitlines():
            if line.startswith(_CANDIDATE):
                server = _address(line)
                if server is None:
                    continue
                if server not in doors:
                    doors[server] = await self._open(server)
                line = _with_address(line, doors[server].address)
            lines.append(line)
        if not doors:
            raise CallError("the server's answer has no IPv4 address; a relay needs one")
        return _joined(lines)

    def block(self, seconds: float, *directions: Direction) -> None:
        """Lose every packet for so long, of both directions unless one is named."""
        for direction in directions or Direction:
            self._lanes[direction].link.block(seconds)

    def delay(self, by: float, seconds: float, *directions: Direction) -> None:
        """Make packets of the next `seconds` late `by` so much; what follows waits behind them, in order."""
        for direction in directions or Direction:
            self._lanes[direction].link.delay(by, seconds)

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Packets carried and lost of each direction so far."""
        return {
            direction.value: {"carried": lane.link.carried, "lost": lane.link.lost}
            for direction, lane in self._lanes.items()
        }

    async def _open(self, server: Address) -> "_Door":
        door = _Door(self._lanes[Direction.UP], self._lanes[Direction.DOWN])
        self._doors.append(door)
        try:
            await door.open(server)
        except OSError as error:
            raise CallError(f"the server at {server[0]} cannot be reached ({error.strerror})") from error
        return door


class _Lane:
    """Carries packets over a link, in order, each to be handed over when the link says."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self.link = link
        self._clock = clock
        self._under_way: deque[tuple[float, bytes, Callable[[bytes], None]]] = deque()
        self._news = asyncio.Event()

    def send(self, packet: bytes, hand_over: Callable[[bytes], None]) -> None:
        due = self.link.passage(len(packet))
        if due is None or len(self._under_way) >= _MOST_UNDER_WAY:
            return
        if not self._under_way and due <= self._clock.now():
            hand_over(packet)
        else:
            self._under_way.append((due, packet, hand_over))
            self._news.set()

    async def carry(self) -> None:
        """Until cancelled."""
        while True:
            while self._under_way:
                due, packet, hand_over = self._under_way[0]
                await self._clock.sleep_until(due)
                # Only now: while it is there, nothing overtakes it.
                self._under_way.popleft()
                hand_over(packet)
            self._news.clear()
            await self._news.wait()

    def hurry(self) -> None:
        """Hand over everything that is under way."""
        while self._under_way:
            _, packet, hand_over = self._under_way.popleft()
            hand_over(packet)


class _Door:
    """Stands for one address of the server's: a socket that the user calls, and one that calls the server."""

    def __init__(self, up: _Lane, down: _Lane) -> None:
        self._up, self._down = up, down
        self._user: Address | None = None
        self._near = _Socket(self._from_user)
        self._far = _Socket(self._from_server)

    async def open(self, server: Address) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self._near, local_addr=(LOOPBACK, 0))
        await loop.create_datagram_endpoint(lambda: self._far, remote_addr=server)

    @property
    def address(self) -> Address:
        """Where the user finds the server."""
        host, port = self._near.transport.get_extra_info("sockname")
        return host, port

    async def close(self) -> None:
        for end in (self._near, self._far):
            await end.close()

    def _from_user(self, packet: bytes, sender: Address) -> None:
        self._user = sender
        self._up.send(packet, self._far.transport.sendto)

    def _from_server(self, packet: bytes, sender: Address) -> None:
        self._down.send(packet, self._to_user)

    def _to_user(self, packet: bytes) -> None:
        if self._user is not None:
            self._near.transport.sendto(packet, self._user)


class _Socket(asyncio.DatagramProtocol):
    """An error is none of ours to tell: a peer that is gone is what ICE finds out."""

    transport: asyncio.DatagramTransport

    def __init__(self, receive: Callable[[bytes, Address], None]) -> None:
        self._receive = receive
        self._closed: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)
        self._closed = asyncio.get_running_loop().create_future()
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, buffer, _BUFFER_BYTES)

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self._receive(data, (addr[0], addr[1]))

    def connection_lost(self, exc: Exception | None) -> None:
        assert self._closed is not None
        self._closed.set_result(None)

    async def close(self) -> None:
        if self._closed is not None:
            self.transport.close()
            await self._closed


def _address(line: str) -> Address | None:
    """Of a candidate (RFC 8839, 5.1) that is UDP over IPv4; else None."""
    _, _, transport, _, host, port, *_ = line.split()
    return (host, int(port)) if transport.lower() == "udp" and _is_ipv4(host) else None


def _is_ipv4(host: str) -> bool:
    return host.count(".") == 3 and host.replace(".", "").isdecimal()


def _with_address(line: str, address: Address) -> str:
    fields = line.split()
    fields[4], fields[5] = address[0], str(address[1])
    return " ".join(fields)


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\r\n" for line in lines)
