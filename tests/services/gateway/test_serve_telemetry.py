"""The real server with a real broker and a real collector: told of turns, and in nobody's way."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from pipeline.clock import MonotonicClock
from services.lab.measures import until_measured
from services.lab.synthetic_user import SyntheticUser, calling
from tests.services.telemetry.collector import Collector
from tests.services.telemetry.mosquitto import body, listening, mosquitto, told
from tests.services.telemetry.schema_check import assert_fits
from tests.serving import serving

pytestmark = [pytest.mark.models, pytest.mark.engine]


async def ask(user: SyntheticUser, text: str) -> None:
    """Type, and wait until the turn that answers is over and measured."""
    since = len(user.told)
    user.type(text)
    async with asyncio.timeout(60):
        turn = await user.until(lambda message: message.type == "visavis.turn", since=since)
    assert turn.data["record"]["failed"] is None
    await until_measured(user, [turn.data["record"]])


async def test_a_broker_that_dies_in_mid_call_is_no_concern_of_the_call(tmp_path: Path) -> None:
    clock = MonotonicClock()
    secret, other = "marzipan", "periwinkle"
    async with AsyncExitStack() as scope:
        collector = scope.enter_context(Collector())
        with mosquitto(tmp_path) as port:
            settings = {
                "telemetry.site": "lobby",
                "telemetry.node": "kiosk",
                "telemetry.otlp_endpoint": collector.url,
                "telemetry.mqtt.url": f"mqtt://127.0.0.1:{port}",
            }
            served = await asyncio.to_thread(scope.enter_context, serving(settings))
            async with listening(port) as client:
                user = await scope.enter_async_context(calling(served.url, clock))
                state = await told(client, state="online", sessions=1)
                await ask(user, f"Do you like {secret}?")
                turn = await told(client, shortened=[])
        await ask(user, f"Do you like {other}?")
        async with httpx.AsyncClient() as http:
            metrics = (await http.get(f"{served.url}/metrics")).text
        log = served.log.read_text()
    assert_fits("mqtt_state", body(state))
    assert_fits("mqtt_turn", body(turn))
    assert body(turn)["turn"]["input"] == "text"
    assert secret not in turn.payload.decode()
    assert 'visavis_turns_total{code="",input="text",outcome="answered"} 2.0' in metrics
    assert "visavis_mqtt_connected 0.0" in metrics
    traces = "".join(str(request) for _, request in collector.requests)
    assert traces.count('name: "turn"') == 2
    assert secret not in traces
    assert other not in traces
    assert log.count("the MQTT broker at 127.0.0.1 is away") == 1
    assert secret not in log
    assert "Traceback" not in log
