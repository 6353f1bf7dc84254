"""A user without a browser, against a server that does what the test says."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.audible import Run
from pipeline.clock import MonotonicClock
from pipeline.timeline.record import empty_record
from pipeline.webrtc.tuning.loopback import offer_loopback
from services.lab.soak import synthetic
from services.lab.soak.findings import Findings, Plan, Record
from services.lab.soak.report import figures
from services.lab.soak.synthetic import SyntheticCaller
from services.lab.speech_file import SpeechFile
from services.lab.studio.speech import Spoken
from tests.browser.fake_server import FakeServer, FakeSession, fake_server
from tests.services.lab.heard import tone
from tests.services.lab.soak.canned import options

pytestmark = pytest.mark.loopback

offer_loopback()

LINE = Spoken(SpeechFile(Path("q.wav"), tone(0.5), Run(0, 24_000)), "Why?", "synthetic", "piper")


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeServer]:
    monkeypatch.setattr(synthetic, "SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr(synthetic, "LONGEST_PAUSE", 0.01)
    async with fake_server() as server:
        yield server


def planned(url: str, **given: Any) -> tuple[Plan, list[Record]]:
    clock, told = MonotonicClock(), []
    return Plan(options(**given), url.rstrip("/"), clock, clock.now(), Findings(), told.append), told


def caller(plan: Plan) -> "asyncio.Task[None]":
    return asyncio.create_task(SyntheticCaller(3, plan, [LINE]).run())


async def called(server: FakeServer) -> FakeSession:
    """The user's next call."""
    async with asyncio.timeout(30):
        return await server.session()


async def asked(session: FakeSession) -> None:
    """Until the user has said what it has to say."""
    async with asyncio.timeout(30):
        while (await session.expect("client-message"))["t"] != "visavis.speech_end":
            pass


def answered(turn_id: str, **changed: Any) -> dict[str, Any]:
    return {**empty_record(), "turn_id": turn_id, "reply_text": "So.", "user_text": "why", **changed}


async def test_a_turn_is_kept_with_what_the_server_measured_of_it(server: FakeServer) -> None:
    plan, told = planned(server.url, turns=1)
    task = caller(plan)
    session = await called(server)
    await asked(session)
    record = answered("t1")
    session.end_reply(**record)
    measured = {**record, "speech_gaps": [], "clock_bound_ms": 0.5}
    session.send("server-message", {"type": "visavis.measured", "record": measured})
    await task
    (kept,) = plan.findings.records
    assert told == [kept]
    assert (kept["client"], kept["user"], kept["said"], kept["file"]) == ("aiortc", 3, "Why?", "q.wav")
    assert kept["at_s"] > 0.5
    assert (kept["failed"], kept["error"]) == (None, None)
    assert kept["speech_gaps"] == []
    assert kept["clock_bound_ms"] == 0.5
    assert kept["microphone_late_ms"] >= 0


async def test_a_server_that_refuses_gives_failed_turns_and_is_called_for_each(server: FakeServer) -> None:
    server.refusal = (503, "server_full")
    plan, _ = planned(server.url, turns=3)
    await caller(plan)
    assert server.offers == 3
    records = plan.findings.records
    assert [record["failed"] for record in records] == ["call_failed"] * 3
    assert all("refused the call (503): as the test says" in record["error"] for record in records)
    assert records[0]["time_to_first_audio_ms"] is None


async def test_no_server_gives_failed_turns() -> None:
    plan, _ = planned("http://127.0.0.1:9", turns=1)
    await caller(plan)
    (record,) = plan.findings.records
    assert "no server answers" in record["error"]


async def test_a_lost_call_is_a_failed_turn_and_is_made_again(server: FakeServer) -> None:
    plan, _ = planned(server.url, turns=3)
    task = caller(plan)
    first = await called(server)
    await first.close()  # in mid-question, or before it
    second = await called(server)
    await asked(second)
    second.end_reply(**answered("t2"))
    second.state()
    await asked(second)
    second.end_reply(**answered("t3", failed="llm_failed"))
    await task
    records = plan.findings.records
    assert [record["failed"] for record in records] == ["call_failed", None, "llm_failed"]
    assert server.offers == 2


async def test_turns_that_were_told_before_the_call_was_lost_are_kept(server: FakeServer) -> None:
    plan, _ = planned(server.url, turns=1)
    task = caller(plan)
    session = await called(server)
    await asked(session)
    session.state(agent="speaking")
    session.end_reply(**answered("t1", interrupted=True))
    session.state(agent="speaking")
    # Both have arrived once the user's next report has.
    await session.expect("client-message")
    await session.close()
    await task
    assert [record["turn_id"] for record in plan.findings.records] == ["t1", None]
    assert plan.findings.records[1]["failed"] == "call_failed"
    assert figures(plan.findings.records)["premature"] == 1, "a report can be made of them"


async def test_a_users_time_is_up(server: FakeServer) -> None:
    server.refusal = (503, "server_full")
    plan, _ = planned(server.url, turns=None, seconds=1.0)
    await caller(plan)
    assert len(plan.findings.records) > 1
    assert plan.clock.now() >= plan.began + 0.2


async def test_a_relay_carries_the_call_and_is_counted(server: FakeServer) -> None:
    plan, _ = planned(server.url, turns=1, network="clean")
    task = caller(plan)
    session = await called(server)
    await asked(session)
    session.end_reply(**answered("t1"))
    await task
    packets = plan.findings.packets
    assert packets["up", "carried"] > 30
    assert packets["down", "carried"] > 30
    assert packets["up", "lost"] == packets["down", "lost"] == 0


async def test_a_user_that_is_stopped_leaves_nothing_running(server: FakeServer) -> None:
    before = asyncio.all_tasks()
    plan, _ = planned(server.url, turns=5, network="clean")
    task = caller(plan)
    session = await called(server)
    task.cancel()
    await asyncio.wait([task])
    async with asyncio.timeout(10):  # it heard of the end: of a peer that vanished it would later
        await session.closed.wait()
    await session.close()
    assert asyncio.all_tasks() == before
    assert plan.findings.records == []


def test_a_seed_makes_the_same_choices() -> None:
    lines = [Spoken(LINE.file, f"line {k}", "synthetic", "piper") for k in range(8)]

    def order(seed: int, number: int) -> list[str]:
        plan, _ = planned("http://127.0.0.1:9", seed=seed)
        said = synthetic.lines.shuffled(lines, plan.rng(number))
        return [next(said).text for _ in range(20)]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)
    assert sorted(order(1, 0)[:8]) == [f"line {k}" for k in range(8)], "all of them in each round"


def test_rounds() -> None:
    plan, _ = planned("http://127.0.0.1:9", turns=4)
    assert list(plan.rounds()) == [0, 1, 2, 3]
    assert np.isfinite(plan.began)
