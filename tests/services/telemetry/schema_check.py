"""JSON against the schemas that are committed."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from services.telemetry.schemas import folder


def assert_fits(name: str, *instances: Any) -> None:
    validator = Draft202012Validator(json.loads((folder() / f"{name}.schema.json").read_text()))
    for instance in instances:
        validator.validate(instance)
