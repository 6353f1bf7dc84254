"""The one that sessions tell; it hands on to whatever the operator set up."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import fields
from typing import Any, Protocol

from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.turn_record import CONTENT, TurnRecord
from services.config import Config
from services.slo import Slo
from services.telemetry.identity import Identity
from services.telemetry.prometheus import Prometheus

_log = logging.getLogger(__name__)

Record = Mapping[str, Any]
"""A turn, as in turns.json."""

_FIELDS = frozenset(each.name for each in fields(TurnRecord))


class Exporter(Protocol):
    """Told on the event loop, so it may neither block nor wait."""

    name: str
    """As metrics and logs call it."""

    def session_began(self, session_id: str) -> None: ...

    def turn(self, record: Record) -> None:
        """A turn is over, and the client's reports on it are in."""
        ...

    def session_ended(self, session_id: str) -> None: ...


class Telemetry:
    """Tells each exporter what it is told. Nothing that one of them does wrong reaches a conversation."""

    def __init__(
        self, prometheus: Prometheus, exporters: Sequence[Exporter] = (), *, content: bool = False
    ) -> None:
        """`content`: exporters are told what people said, too."""
        self.prometheus = prometheus
        self._exporters: Sequence[Exporter] = (prometheus, *exporters)
        self._content = content

    def session_began(self, session_id: str) -> None:
        self._tell(lambda exporter: exporter.session_began(session_id))

    def turn(self, record: Record) -> None:
        """A turn's whole record, once."""
        shown = published(record, content=self._content)
        self._tell(lambda exporter: exporter.turn(shown))

    def session_ended(self, session_id: str) -> None:
        self._tell(lambda exporter: exporter.session_ended(session_id))

    def _tell(self, tell: Callable[[Exporter], None]) -> None:
        for exporter in self._exporters:
            try:
                tell(exporter)
            except Exception:  # noqa: BLE001  a fault in an exporter must not end a call; it is told in full
                self.prometheus.exporter_failed(exporter.name)
                _log.exception("%s could not take what a session told", exporter.name)


def published(record: Record, *, content: bool) -> Record:
    """What of a record may leave the machine.

    Only fields that its schema knows: one that somebody adds to a record says there whether it is content.
    """
    return {
        name: None if name in CONTENT and not content else value
        for name, value in record.items()
        if name in _FIELDS
    }


@asynccontextmanager
async def open_telemetry(config: Config, slo: Slo, loop_lag: LoopLag) -> AsyncIterator[Telemetry]:
    """What the settings ask for; on leaving, nothing of it is left running."""
    telemetry = config.telemetry
    identity = Identity(telemetry.site, telemetry.node_name)
    prometheus = Prometheus(loop_lag, slo, config.server.max_sessions)
    exporters: list[Exporter] = []
    async with AsyncExitStack() as scope:
        # Imported only here: most servers have neither a collector nor a broker.
        if telemetry.otlp_endpoint is not None:
            from services.telemetry.traces import open_traces

            opening = open_traces(telemetry.otlp_endpoint, identity, _model(config))
            exporters.append(await scope.enter_async_context(opening))
        if telemetry.mqtt.url is not None:
            from services.telemetry.mqtt import open_mqtt

            mqtt = await scope.enter_async_context(
                open_mqtt(telemetry.mqtt, identity, slo, config.server.max_sessions)
            )
            prometheus.watch(mqtt.broker)
            exporters.append(mqtt)
        yield Telemetry(prometheus, exporters, content=telemetry.content)


def _model(config: Config) -> str | None:
    """What the language model is called, where the settings name one."""
    if config.llm.kind == "openai":
        return config.llm.openai.model
    file = config.llm.embedded.model
    return None if file is None else file.stem
