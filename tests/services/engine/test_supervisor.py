import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from pipeline.clock import MonotonicClock
from pipeline.errors import IllegalTransitionError, LanguageModelError
from services.engine.supervisor import EngineSettings, EngineState, EngineSupervisor, RestartPolicy
from services.engine.worker_process import EngineError

Script = Callable[[str], None]


class HurriedClock(MonotonicClock):
    """Notes how long it was to sleep, and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep_until(self, deadline: float) -> None:
        self.slept.append(round(deadline - self.now(), 1))


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


async def changed_to(states: "asyncio.Queue[EngineState]", wanted: EngineState) -> None:
    async with asyncio.timeout(30):
        while await states.get() is not wanted:
            pass


# ── without an engine ──────────────────────────────────────────────────────────────────────────


def test_delays_double_up_to_a_bound() -> None:
    policy = RestartPolicy(first_delay=0.1, longest_delay=1.0)
    assert [policy.delay(deaths) for deaths in (1, 2, 3, 4, 5, 60)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


async def test_a_worker_that_never_starts_fails_the_start_at_once(script: Script, tmp_path: Path) -> None:
    script("sys.exit('bad model')")
    states: list[EngineState] = []
    engine = EngineSupervisor(EngineSettings(tmp_path), HurriedClock(), on_change=states.append)
    with pytest.raises(EngineError, match="bad model"):
        await engine.__aenter__()
    assert states == [EngineState.FAILED, EngineState.STOPPED]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_worker_that_keeps_dying_is_given_up(script: Script, tmp_path: Path) -> None:
    script("ready()")
    clock = HurriedClock()
    states: asyncio.Queue[EngineState] = asyncio.Queue()
    policy = RestartPolicy(first_delay=0.1, longest_delay=0.3, most_in_a_row=4)
    settings = EngineSettings(tmp_path)
    async with EngineSupervisor(settings, clock, policy=policy, on_change=states.put_nowait) as engine:
        await changed_to(states, EngineState.FAILED)
        assert clock.slept == [0.1, 0.2, 0.3]
        with pytest.raises(LanguageModelError, match="failed"):
            engine.endpoint()
        with pytest.raises(EngineError):
            await engine.wait_ready()
    assert engine.state is EngineState.STOPPED


async def test_a_long_life_makes_the_next_death_the_first_again(script: Script, tmp_path: Path) -> None:
    script("ready()")
    clock = HurriedClock()
    restarted = asyncio.Event()

    def on_change(state: EngineState) -> None:
        if len(clock.slept) == 5:
            restarted.set()

    policy = RestartPolicy(healthy_after=0.0, most_in_a_row=2)
    async with EngineSupervisor(EngineSettings(tmp_path), clock, policy=policy, on_change=on_change):
        async with asyncio.timeout(30):
            await restarted.wait()
    assert clock.slept[:5] == [0.1] * 5


async def test_stopping_while_it_waits_to_restart(script: Script, tmp_path: Path) -> None:
    script("ready()")
    states: asyncio.Queue[EngineState] = asyncio.Queue()
    policy = RestartPolicy(first_delay=3600, longest_delay=3600)
    settings = EngineSettings(tmp_path)
    async with EngineSupervisor(
        settings, MonotonicClock(), policy=policy, on_change=states.put_nowait
    ) as engine:
        await changed_to(states, EngineState.RESTARTING)
        assert engine.uptime() == 0
        assert engine.pid is None
    assert engine.state is EngineState.STOPPED
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_start_that_is_cancelled_leaves_nothing(script: Script, tmp_path: Path) -> None:
    script("sys.stdin.read()")
    before = children()
    engine = EngineSupervisor(EngineSettings(tmp_path), MonotonicClock())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await engine.__aenter__()
    assert engine.state is EngineState.STOPPED
    assert children() == before
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_is_stopped_does_not_come_back(script: Script, tmp_path: Path) -> None:
    script("ready(); sys.stdin.read()")
    async with EngineSupervisor(EngineSettings(tmp_path), MonotonicClock()) as engine:
        pass
    await engine.stop()
    with pytest.raises(IllegalTransitionError, match="stopped → ready"):
        engine._become(EngineState.READY)


# ── with the engine ────────────────────────────────────────────────────────────────────────────


async def health(engine: EngineSupervisor) -> int:
    endpoint = engine.endpoint()
    async with httpx.AsyncClient() as http:
        return (await http.get(endpoint.at("/slots"), headers=endpoint.headers)).status_code


@pytest.mark.engine
async def test_it_serves_and_leaves_no_process(settings: EngineSettings) -> None:
    before = children()
    async with EngineSupervisor(settings, MonotonicClock()) as engine:
        assert engine.state is EngineState.READY
        assert await health(engine) == 200
        assert engine.uptime() > 0
        assert children() - before == {engine.pid}
    assert children() == before
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.engine
async def test_a_killed_engine_is_replaced(settings: EngineSettings) -> None:
    states: asyncio.Queue[EngineState] = asyncio.Queue()
    async with EngineSupervisor(settings, MonotonicClock(), on_change=states.put_nowait) as engine:
        old, old_pid = engine.endpoint(), engine.pid
        assert old_pid is not None
        os.kill(old_pid, signal.SIGKILL)
        await changed_to(states, EngineState.RESTARTING)
        with pytest.raises(LanguageModelError, match="restarting"):
            engine.endpoint()
        await engine.wait_ready()
        assert engine.pid != old_pid
        assert engine.endpoint().api_key != old.api_key
        assert await health(engine) == 200


PARENT = """
import asyncio, sys
from pathlib import Path
from pipeline.clock import MonotonicClock
from services.engine.supervisor import EngineSettings, EngineSupervisor

async def main():
    async with EngineSupervisor(EngineSettings(Path(sys.argv[1]), context=512), MonotonicClock()) as engine:
        print(engine.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.engine
def test_the_engine_goes_when_its_parent_is_killed(settings: EngineSettings) -> None:
    command = [sys.executable, "-c", PARENT, str(settings.model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        assert worker.is_running()
        parent.kill()
    gone, alive = psutil.wait_procs([worker], timeout=20)
    assert (len(gone), alive) == (1, [])
