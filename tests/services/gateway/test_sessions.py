"""How a session begins or does not, without models: a stack and sessions that do what the test says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiortc import RTCSessionDescription

from pipeline.clock import VirtualClock
from pipeline.errors import BadOfferError, LanguageModelError
from services.config import Config
from services.gateway import sessions as module
from services.gateway.sessions import EngineDownError, InternalError, Sessions

ADDRESS = "http://10.0.0.7:8000/v1"


class Stack:
    """Stands for the loaded models. `fault` is raised when a session wants its stages."""

    config = Config()
    clock = VirtualClock()
    dialect = "openai"
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


async def offer(stack: Any) -> None:
    async with Sessions(stack) as sessions:
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
