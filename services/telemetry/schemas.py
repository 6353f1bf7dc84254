"""JSON Schemas of what leaves the server, made from the classes that are its shape.

    python -m services.telemetry.schemas

writes them into web/schemas; a test fails where what is there differs from what would be written.
"""

import json
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipeline.timeline.turn_record import SpokenTurn, TurnRecord
from services.split.evidence_log import KeptLine
from services.telemetry.payloads import Alarm, NodeState, TurnReport

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SHAPES: dict[str, tuple[TypeAdapter[Any], str]] = {
    "turn": (TypeAdapter(TurnRecord), "The record of visavis.turn and visavis.measured on the data channel."),
    "turns": (TypeAdapter(list[SpokenTurn]), "turns.json, as `visavis talk` writes it."),
    "evidence": (TypeAdapter(KeptLine), "One line of llm.split_log."),
    "mqtt_state": (TypeAdapter(NodeState), "visavis/{site}/node/{node}/state, retained."),
    "mqtt_turn": (TypeAdapter(TurnReport), "visavis/{site}/session/{session}/turn."),
    "mqtt_alarm": (TypeAdapter(Alarm), "visavis/{site}/alarm."),
}


def folder() -> Path:
    """Where the schemas are kept."""
    return Path(str(resources.files("web"))) / "schemas"


def generated() -> dict[str, str]:
    """File name → schema, as text."""
    return {f"{name}.schema.json": _text(name, *shape) for name, shape in _SHAPES.items()}


def write() -> None:
    folder().mkdir(exist_ok=True)
    for name, text in generated().items():
        (folder() / name).write_text(text, encoding="utf-8")


def _text(name: str, adapter: TypeAdapter[Any], about: str) -> str:
    schema = {
        "$schema": _DIALECT,
        "$id": f"{name}.schema.json",
        "$comment": f"{about} Generated: python -m services.telemetry.schemas",
        **adapter.json_schema(mode="serialization"),
    }
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    write()
