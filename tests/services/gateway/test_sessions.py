"""How a session begins or does not, without models: a stack and sessions that do what the test says."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from aiortc import RTCSessionDescription

from pipeline.clock import VirtualClock
from pipeline.errors import BadOfferError, LanguageModelError
from pipeline.events import Timeline, TurnInput, TurnTrace
from pipeline.timeline.loop_lag import LoopLag
from services.config import Config
from services.gateway import sessions as module
from services.gateway.sessions import EngineDownError, InternalError, Sessions
from services.telemetry.telemetry import Record

ADDRESS = "http://10.0.0.7:8000/v1"


class Stack:
    """Stands for the loaded models. `fault` is raised when a session wants its stages."""

    config = Config()
    clock = VirtualClock()
    loop_lag = LoopLag(clock)
    route: Mapping[str, Any] = MappingProxyType({"pattern": "colocated", "dialect": "openai"})
    session_settings = None
    fault: Exception | None = None

    def trouble(self) -> str | None:
        return None

    @asynccontextmanager
    async def stages(self) -> AsyncIterator[None]:
        if self.fault is not None:
            raise self.fault
        yield


class Peer:
    """Stands for a connection. `fault` is raised in place of an answer."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.closed = False

    async def answer(self, sdp: str) -> RTCSessionDescription:
        if self.fault is not None:
            raise self.fault
        return RTCSessionDescription("v=0", "answer")

    async def close(self) -> None:
        self.closed = True


class Telemetry:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def session_began(self, session_id: str) -> None:
        self.told.append("began")

    def turn(self, record: Record) -> None:
        self.told.append(record["turn_id"])

    def session_ended(self, session_id: str) -> None:
        self.told.append("ended")


@pytest.fixture
def stack() -> Stack:
    return Stack()


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Peer:
    """The peer of the next session, which lasts until it is hung up."""
    peer, over = Peer(), asyncio.Event()
    session = SimpleNamespace(session_id="s1", peer=peer, run=over.wait, hang_up=over.set)
    monkeypatch.setattr(module, "Session", lambda *parts: session)
    return peer


async def offer(stack: Any, telemetry: Any = None) -> None:
    async with Sessions(stack, telemetry or Telemetry()) as sessions:  # type: ignore[arg-type]
        await sessions.offer("v=0", None, restart=False)
        assert len(sessions) == 1


async def test_a_session_begins(stack: Stack, peer: Peer) -> None:
    await offer(stack)
    assert not peer.closed, "the session closes it itself"


async def test_a_model_that_does_not_answer_is_told_without_its_address(stack: Stack) -> None:
    stack.fault = LanguageModelError(f"{ADDRESS} cannot be reached")
    with pytest.raises(EngineDownError) as caught:
        await offer(stack)
    assert str(caught.value) == LanguageModelError.told


async def test_a_fault_of_ours_is_not_blamed_on_the_engine(stack: Stack) -> None:
    stack.fault = KeyError(ADDRESS)
    with pytest.raises(InternalError) as caught:
        await offer(stack)
    assert caught.value.code == "internal"
    assert ADDRESS not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "raised"), [(BadOfferError("no audio"), BadOfferError), (ValueError("?"), InternalError)]
)
async def test_whatever_keeps_it_from_an_answer_the_peer_is_closed(
    stack: Stack, peer: Peer, fault: Exception, raised: type[Exception]
) -> None:
    peer.fault = fault
    with pytest.raises(raised):
        await offer(stack)
    assert peer.closed


class Talk:
    """Stands for a session of one turn, of which its client reports nothing."""

    def __init__(
        self,
        session_id: str,
        stages: object,
        settings: object,
        clock: object,
        timeline: Timeline,
        *more: object,
    ) -> None:
        self.session_id, self.peer, self.timeline = session_id, Peer(), timeline
        self.records: list[Record] = []
        self._over = asyncio.Event()

    def measured(self, record: Record) -> None:
        self.records.append(record)

    def hang_up(self) -> None:
        self._over.set()

    async def run(self) -> None:
        await self._over.wait()
        self.timeline.turn_over(TurnTrace("t1", self.session_id, TurnInput.TEXT, 1.0, ended_at=2.0))
        self.timeline.close()
        assert [record["turn_id"] for record in self.records] == ["t1"]


async def test_telemetry_is_told_of_sessions_and_of_each_turn_once(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "Session", Talk)
    telemetry = Telemetry()
    await offer(stack, telemetry)
    assert telemetry.told == ["began", "t1", "ended"]
    assert "fault" not in caplog.text


async def test_a_session_that_never_began_is_not_told(stack: Stack, peer: Peer) -> None:
    peer.fault, telemetry = BadOfferError("no audio"), Telemetry()
    with pytest.raises(BadOfferError):
        await offer(stack, telemetry)
    assert telemetry.told == []
