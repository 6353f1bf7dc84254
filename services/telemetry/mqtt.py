"""The state of this machine, its turns and its alarms, told to an MQTT 5 broker."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Literal
from urllib.parse import urlsplit

from pipeline.clock import wall_time
from services.config.tree import Mqtt as MqttSettings
from services.slo import Slo, judge
from services.telemetry.broker import Address, Broker, Message
from services.telemetry.identity import Identity
from services.telemetry.payloads import (
    SCHEMA_VERSION,
    Alarm,
    NodeState,
    Presence,
    encoded,
    encoded_turn,
)

_PORT, _TLS_PORT = 1883, 8883


class Mqtt:
    """The exporter; `broker` carries what it says."""

    name = "mqtt"

    def __init__(self, broker: Broker, identity: Identity, slo: Slo, max_sessions: int) -> None:
        self.broker = broker
        self._identity = identity
        self._slo = slo
        self._max_sessions = max_sessions
        self._sessions = 0

    def session_began(self, session_id: str) -> None:
        self._sessions += 1
        self.tell_state()

    def session_ended(self, session_id: str) -> None:
        self._sessions -= 1
        self.tell_state()

    def turn(self, record: Mapping[str, Any]) -> None:
        identity, at = self._identity, wall_time()
        payload = encoded_turn(identity.site, identity.node, at, record)
        self.broker.publish(Message(identity.turn_topic(record["session_id"]), payload))
        broken = [verdict for verdict in judge(self._slo, [record]) if verdict.holds is False]
        if broken:
            alarm = Alarm(
                schema_version=SCHEMA_VERSION,
                site=identity.site,
                node=identity.node,
                at=at,
                session_id=record["session_id"],
                turn_id=record["turn_id"],
                broken=broken,
                slo_digest=self._slo.digest,
            )
            self.broker.publish(Message(identity.alarm_topic, encoded(alarm)))

    def tell_state(self) -> None:
        """That we are there, and how busy."""
        state = _node_state(
            self._identity,
            Presence.ONLINE,
            at=wall_time(),
            sessions=self._sessions,
            max_sessions=self._max_sessions,
            dropped=self.broker.dropped,
        )
        self.broker.retain(state)


@asynccontextmanager
async def open_mqtt(
    settings: MqttSettings, identity: Identity, slo: Slo, max_sessions: int
) -> AsyncIterator[Mqtt]:
    """Begins to look for the broker, and does not wait for it; on leaving, the broker is told.

    `settings.url` is set.
    """
    will = _node_state(identity, Presence.OFFLINE, reason="lost", max_sessions=max_sessions)
    async with Broker(_address(settings), will) as broker:
        mqtt = Mqtt(broker, identity, slo, max_sessions)
        mqtt.tell_state()
        try:
            yield mqtt
        finally:
            farewell = _node_state(
                identity,
                Presence.OFFLINE,
                reason="stopped",
                at=wall_time(),
                sessions=0,
                max_sessions=max_sessions,
                dropped=broker.dropped,
            )
            broker.retain(farewell)


def _node_state(
    identity: Identity,
    state: Presence,
    *,
    max_sessions: int,
    reason: Literal["stopped", "lost"] | None = None,
    at: str | None = None,
    sessions: int | None = None,
    dropped: int | None = None,
) -> Message:
    payload = NodeState(
        schema_version=SCHEMA_VERSION,
        site=identity.site,
        node=identity.node,
        state=state,
        reason=reason,
        at=at,
        version=version("visavis"),
        sessions=sessions,
        max_sessions=max_sessions,
        dropped=dropped,
    )
    return Message(identity.state_topic, encoded(payload))


def _address(mqtt: MqttSettings) -> Address:
    assert mqtt.url is not None
    parts = urlsplit(mqtt.url)
    assert parts.hostname is not None  # the settings see to it
    tls = parts.scheme == "mqtts"
    return Address(
        host=parts.hostname,
        port=parts.port or (_TLS_PORT if tls else _PORT),
        tls=tls,
        ca_file=mqtt.ca_file,
        username=mqtt.username,
        password=None if mqtt.password is None else mqtt.password.get_secret_value(),
    )
