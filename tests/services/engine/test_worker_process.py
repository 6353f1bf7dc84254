"""How one worker begins and ends; small scripts stand in for workers that misbehave."""

import asyncio
import logging
import signal
from collections.abc import Callable

import httpx
import psutil
import pytest

from services.engine import worker_process as module
from services.engine.messages import WorkerSettings
from services.engine.supervisor import EngineSettings
from services.engine.worker_process import EngineError, WorkerProcess, worker_process

Script = Callable[[str], None]

ANY = WorkerSettings("/no/model.gguf", "sesame", slots=1, context=512, threads=1)


def real(settings: EngineSettings) -> WorkerSettings:
    return WorkerSettings(str(settings.model), "sesame", settings.slots, settings.context, settings.threads)


async def start(settings: WorkerSettings = ANY, timeout: float = 30.0) -> WorkerProcess:
    async with worker_process(settings, timeout) as worker:
        return worker


async def test_the_settings_come_in_on_standard_input(script: Script) -> None:
    script("sys.stderr.write(sys.stdin.readline()); sys.exit(7)")
    with pytest.raises(EngineError, match=r'exit code 7 before it was ready.*\n.*"api_key": "sesame"'):
        await start()


async def test_a_worker_that_never_reads_is_reported_by_its_exit(script: Script) -> None:
    script("os.close(0); sys.exit('no memory')")
    with pytest.raises(EngineError, match=r"exit code 1.*\n.*no memory"):
        await start()


async def test_a_worker_that_takes_too_long_is_ended(script: Script) -> None:
    script("sys.stderr.write(f'{os.getpid()}\\n'); sys.stderr.flush(); sys.stdin.read()")
    with pytest.raises(EngineError, match=r"was not ready within 0\.5 s") as caught:
        await start(timeout=0.5)
    assert not psutil.pid_exists(int(str(caught.value).split()[-1]))


async def test_an_interpreter_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMAND", ("/no/such/python",))
    with pytest.raises(EngineError, match="cannot be started"):
        await start()


async def test_a_flood_of_log_lines_stops_nobody(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    script("sys.stderr.write('x' * 300_000 + ('\\n' + 'y' * 99) * 5000); ready(); sys.stdin.read()")
    with caplog.at_level(logging.DEBUG, logger=module.__name__):
        worker = await start()
    assert await worker.exited() == 0
    assert len(caplog.records) >= 5000
    assert max(len(record.getMessage()) for record in caplog.records) < 5000


async def test_a_worker_that_ignores_the_end_of_its_input_gets_sigterm(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSING", 0.2)
    script("ready(); time.sleep(60)")
    assert await (await start()).exited() == -signal.SIGTERM


async def test_a_worker_that_ignores_sigterm_gets_sigkill(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSING", 0.2)
    script("signal.signal(signal.SIGTERM, signal.SIG_IGN); ready(); time.sleep(60)")
    assert await (await start()).exited() == -signal.SIGKILL


async def test_no_task_is_left(script: Script) -> None:
    script("ready(); sys.stdin.read()")
    await start()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.engine
async def test_the_worker_leaves_when_its_input_ends(settings: EngineSettings) -> None:
    worker = await start(real(settings))
    assert await worker.exited() == 0


@pytest.mark.engine
async def test_the_worker_leaves_at_once_also_in_the_middle_of_a_reply(settings: EngineSettings) -> None:
    async with httpx.AsyncClient() as http:
        async with worker_process(real(settings), 30.0) as worker:
            request = http.build_request(
                "POST",
                f"{worker.ready.url}/completion",
                json={"prompt": "Once", "n_predict": 400, "ignore_eos": True, "stream": True, "id_slot": 0},
                headers={"Authorization": "Bearer sesame"},
            )
            response = await http.send(request, stream=True)
            await anext(response.aiter_bytes())
        assert await worker.exited() == 0
        await response.aclose()


@pytest.mark.engine
async def test_sigterm_ends_the_worker_and_ctrl_c_does_not(settings: EngineSettings) -> None:
    async with worker_process(real(settings), 30.0) as worker, httpx.AsyncClient() as http:
        worker.process.send_signal(signal.SIGINT)
        assert (await http.get(f"{worker.ready.url}/health")).status_code == 200
        worker.process.send_signal(signal.SIGTERM)
        assert await worker.exited() == 0


@pytest.mark.engine
async def test_the_key_stands_neither_in_arguments_nor_environment(settings: EngineSettings) -> None:
    async with worker_process(real(settings), 30.0) as worker:
        seen = psutil.Process(worker.ready.pid)
        assert "sesame" not in " ".join(seen.cmdline())
        assert "sesame" not in str(seen.environ())


@pytest.mark.engine
async def test_only_loopback_and_only_with_the_key(settings: EngineSettings) -> None:
    async with worker_process(real(settings), 30.0) as worker, httpx.AsyncClient() as http:
        listening = [
            connection.laddr
            for connection in psutil.Process(worker.ready.pid).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert [address.ip for address in listening] == ["127.0.0.1"]
        assert worker.ready.url == f"http://127.0.0.1:{listening[0].port}"
        for path in ("/slots", "/metrics", "/v1/models", "/props"):
            url = worker.ready.url + path
            assert (await http.get(url)).status_code == 401
            assert (await http.get(url, headers={"Authorization": "Bearer guess"})).status_code == 401
        answer = await http.get(f"{worker.ready.url}/slots", headers={"Authorization": "Bearer sesame"})
        assert [(slot["id"], slot["n_ctx"]) for slot in answer.json()] == [(0, 512), (1, 512)]


@pytest.mark.engine
async def test_a_model_that_cannot_be_loaded_is_named() -> None:
    with pytest.raises(EngineError, match=r"/no/model\.gguf"):
        await start()
