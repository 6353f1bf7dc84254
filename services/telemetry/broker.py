"""A connection to an MQTT broker that may come and go, in a thread and event loop of its own.

aiomqtt connects on the default executor of the loop that it runs on. On the server's loop that is where
pictures and sound are encoded, and a broker that does not answer would hold one of its two threads for
seconds again and again. Here, whatever becomes of the broker, no conversation waits for it or ends with it.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

_log = logging.getLogger(__name__)

KEPT = 1000
"""Messages that are kept while the broker is away."""

_AT_LEAST_ONCE = 1
_KEEPALIVE = 30
"""Seconds of silence after which the broker is asked whether it is there; it publishes the last will after
half as much more."""

_ANSWER = 10.0
"""Seconds in which the broker has to take a message."""

_LAST_WORDS = 3.0
"""Seconds for what is still to be told when the server ends."""

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool
    ca_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    topic: str
    payload: bytes
    """JSON."""


def growing_waits() -> Iterator[float]:
    """Seconds before each next attempt to reach a broker: 1, 2, 4 … 60, 60."""
    wait = _FIRST_WAIT
    while True:
        yield wait
        wait = min(2 * wait, _LONGEST_WAIT)


class Broker:
    """What `publish` and `retain` are given gets there, at least once, when the broker can be reached.

    `async with` it; leaving gives it three seconds for what is left.
    """

    def __init__(self, address: Address, will: Message, *, kept: int = KEPT) -> None:
        """`will`: retained by the broker when we are gone without a farewell."""
        self._address = address
        self._will = will
        self._kept = kept
        self.connected = False
        self.dropped = 0
        """Messages that found no room while the broker was away: the oldest."""
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="mqtt")
        # From here on only the thread of this loop touches anything.
        self._loop = asyncio.new_event_loop()
        self._waiting: deque[Message] = deque()
        self._state: Message | None = None
        self._changed = asyncio.Event()
        self._ending = asyncio.Event()
        self._away_told = False

    async def __aenter__(self) -> Self:
        self._running = asyncio.get_running_loop().run_in_executor(self._executor, self._run)
        self._running.add_done_callback(_tell_fault)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._running.done():
            self._loop.call_soon_threadsafe(self._end)
        await asyncio.wait([self._running])
        self._executor.shutdown()

    def publish(self, message: Message) -> None:
        """Have a message delivered once the broker is there. Does not wait."""
        self._in_thread(self._keep, message)

    def retain(self, state: Message) -> None:
        """Have the broker keep this as the newest state. One that was not delivered yet is replaced."""
        self._in_thread(self._replace, state)

    def _in_thread(self, act: Callable[[Message], None], message: Message) -> None:
        # After a fault of ours, which is logged, the loop is closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(act, message)

    # ── in the thread ──────────────────────────────────────────────────────────────────────────

    def _keep(self, message: Message) -> None:
        if len(self._waiting) >= self._kept:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(message)
        self._changed.set()

    def _replace(self, state: Message) -> None:
        self._state = state
        self._changed.set()

    def _end(self) -> None:
        self._ending.set()
        self._changed.set()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        finally:
            self.connected = False

    async def _serve(self) -> None:
        self._loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="mqtt connect"))
        async with asyncio.TaskGroup() as tasks:
            staying = tasks.create_task(self._stay_connected())
            await self._ending.wait()
            await asyncio.wait([staying], timeout=_LAST_WORDS)
            staying.cancel()

    async def _stay_connected(self) -> None:
        waits = growing_waits()
        while True:
            try:
                async with self._client() as client:
                    waits = growing_waits()
                    self._tell_connected()
                    await self._deliver_until_lost(client)
                    return
            except* aiomqtt.MqttError as lost:
                self._tell_away(lost)
            if await self._ended_within(next(waits)):
                return

    async def _ended_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _client(self) -> aiomqtt.Client:
        address = self._address
        tls = aiomqtt.TLSParameters(ca_certs=None if address.ca_file is None else str(address.ca_file))
        return aiomqtt.Client(
            address.host,
            address.port,
            username=address.username,
            password=address.password,
            protocol=aiomqtt.ProtocolVersion.V5,
            will=aiomqtt.Will(
                self._will.topic,
                self._will.payload,
                _AT_LEAST_ONCE,
                retain=True,
                properties=_json(PacketTypes.WILLMESSAGE),
            ),
            keepalive=_KEEPALIVE,
            timeout=_ANSWER,
            tls_params=tls if address.tls else None,
            logger=_log,
        )

    async def _deliver_until_lost(self, client: aiomqtt.Client) -> None:
        """Returns when the end was told and nothing is left to deliver."""
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(client))
            await self._deliver(client)
            watching.cancel()

    async def _deliver(self, client: aiomqtt.Client) -> None:
        told: Message | None = None
        while True:
            ending = self._ending.is_set()
            # The state goes first, for a broker that lost it or gave it up, but a farewell goes last.
            if self._state is not None and self._state is not told and not (ending and self._waiting):
                told = self._state
                await _publish(client, told, retain=True)
            elif self._waiting:
                message = self._waiting[0]
                await _publish(client, message, retain=False)
                # It may have been dropped meanwhile, to make room.
                if self._waiting and self._waiting[0] is message:
                    self._waiting.popleft()
            elif ending:
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    def _tell_connected(self) -> None:
        self.connected, self._away_told = True, False
        _log.info(
            "the MQTT broker at %s is there; %d messages were kept for it, %d were dropped so far",
            self._address.host,
            len(self._waiting),
            self.dropped,
        )

    def _tell_away(self, lost: BaseExceptionGroup[aiomqtt.MqttError]) -> None:
        self.connected = False
        if not self._away_told:
            self._away_told = True
            _log.warning(
                "the MQTT broker at %s is away (%s); the newest %d messages are kept for it",
                self._address.host,
                _cause(lost),
                self._kept,
            )


async def _watch(client: aiomqtt.Client) -> None:
    """Raises MqttError as soon as the connection is lost. Nothing is subscribed to, so nothing comes."""
    async for _ in client.messages:
        pass


async def _publish(client: aiomqtt.Client, message: Message, *, retain: bool) -> None:
    await client.publish(
        message.topic,
        message.payload,
        qos=_AT_LEAST_ONCE,
        retain=retain,
        properties=_json(PacketTypes.PUBLISH),
    )


def _json(packet: int) -> Properties:
    properties = Properties(packet)  # type: ignore[no-untyped-call]
    properties.ContentType = "application/json"
    properties.PayloadFormatIndicator = 1  # UTF-8
    return properties


def _cause(lost: BaseException) -> str:
    while isinstance(lost, BaseExceptionGroup):
        lost = lost.exceptions[0]
    return str(lost.__cause__ or lost)


def _tell_fault(running: asyncio.Future[None]) -> None:
    if not running.cancelled() and (fault := running.exception()) is not None:
        _log.error("MQTT has stopped by a fault of ours; conversations go on", exc_info=fault)
