"""State, turns and alarms as a real broker hands them on."""

import asyncio
import sys
from pathlib import Path

import pytest

from services import slo
from services.config.tree import Mqtt as Settings
from services.telemetry.identity import Identity
from services.telemetry.mqtt import _address, open_mqtt
from tests.services.telemetry.mosquitto import body, listening, mosquitto, told
from tests.services.telemetry.schema_check import assert_fits
from tests.services.telemetry.turns import GAP, a_turn

IDENTITY = Identity("lobby", "kiosk")
STATE, ALARM = "visavis/lobby/node/kiosk/state", "visavis/lobby/alarm"


async def test_a_conversation_as_a_listener_sees_it(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as port:
        settings = Settings(url=f"mqtt://127.0.0.1:{port}")
        async with listening(port) as client:
            async with open_mqtt(settings, IDENTITY, slo.load(), max_sessions=4) as mqtt:
                online = await told(client, state="online", sessions=0, max_sessions=4)
                mqtt.session_began("session-5")
                assert (await told(client, sessions=1)).topic.value == STATE
                mqtt.turn(a_turn())
                turn = await told(client)
                mqtt.turn(a_turn(speech_gaps=[GAP], failed="tts_failed"))
                await told(client, shortened=[])
                alarm = await told(client, turn_id="turn-7")
                mqtt.session_ended("session-5")
                await told(client, sessions=0)
            offline = await told(client, state="offline", reason="stopped")
        async with listening(port) as late:
            assert (await told(late, state="offline")).retain
    assert turn.topic.value == "visavis/lobby/session/session-5/turn"
    assert body(turn)["turn"]["turn_id"] == "turn-7"
    assert alarm.topic.value == ALARM
    assert [each["name"] for each in body(alarm)["broken"]] == ["largest_speech_gap_ms", "failed_turns"]
    assert body(alarm)["broken"][0] == {
        "name": "largest_speech_gap_ms",
        "bound": "at most",
        "limit": 120,
        "value": 200.0,
        "holds": False,
    }
    assert body(alarm)["slo_digest"] == slo.load().digest
    assert_fits("mqtt_state", body(online), body(offline))
    assert_fits("mqtt_turn", body(turn))
    assert_fits("mqtt_alarm", body(alarm))


PROGRAM = """
import asyncio, sys
from services import slo
from services.config.tree import Mqtt
from services.telemetry.identity import Identity
from services.telemetry.mqtt import open_mqtt

async def main():
    async with open_mqtt(Mqtt(url=sys.argv[1]), Identity("lobby", "kiosk"), slo.load(), 1):
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_server_that_is_killed_is_told_of_by_the_broker(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as port:
        async with listening(port) as client:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", PROGRAM, f"mqtt://127.0.0.1:{port}"
            )
            try:
                await told(client, state="online")
            finally:
                process.kill()
                await process.wait()
            will = await told(client, state="offline")
        async with listening(port) as late:
            assert (await told(late, state="offline")).retain
    assert will.topic.value == STATE
    assert (body(will)["reason"], body(will)["at"], body(will)["sessions"]) == ("lost", None, None)
    assert_fits("mqtt_state", body(will))


@pytest.mark.parametrize(
    ("url", "host", "port", "tls"),
    [
        ("mqtt://broker", "broker", 1883, False),
        ("mqtts://broker", "broker", 8883, True),
        ("mqtt://[::1]:7", "::1", 7, False),
    ],
)
def test_addresses(url: str, host: str, port: int, tls: bool) -> None:
    address = _address(Settings(url=url))
    assert (address.host, address.port, address.tls) == (host, port, tls)
