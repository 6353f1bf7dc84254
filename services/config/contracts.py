"""Reads contracts of routes (pipeline/llm/contract.py) from YAML. A fault names file, field, value and what
was expected, and a contract that cannot be kept is refused here, before any worker is asked."""

from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from pipeline.errors import ConfigError
from pipeline.llm.contract import Contract
from pipeline.llm.contract_check import faults
from services.config import yaml_file

EMBEDDED, VLLM_NIXL = "embedded-split", "vllm-nixl"
"""The packaged ones."""


def load(contract: Path | str = EMBEDDED) -> Contract:
    """A file, or a packaged contract by its name. Raises ConfigError naming every fault."""
    path = contract if isinstance(contract, Path) else None
    name, text = yaml_file.read(path, f"contracts/{contract}.yaml", "a contract in YAML")
    _, data = yaml_file.parse(name, text)
    try:
        read = _adapter().validate_python(data)
    except ValidationError as error:
        lines = [_line(detail["loc"], detail["msg"], detail["input"]) for detail in error.errors()]
        raise ConfigError("\n".join(f"{name}: {line}" for line in lines)) from None
    if found := faults(read):
        raise ConfigError("\n".join(f"{name}: {each.field}: {each.what}" for each in found))
    return read


def _line(key: tuple[str | int, ...], what: str, value: object) -> str:
    shown = "" if isinstance(value, dict) else f" (value {value!r})"
    return f"{'.'.join(map(str, key)) or 'the file'}: {what[:1].lower()}{what[1:]}{shown}"


@cache
def _adapter() -> TypeAdapter[Contract]:
    _strict(Contract)
    return TypeAdapter(Contract)


def _strict(shape: Any) -> None:
    """A key that a contract does not have is a fault, not a remark."""
    with_config(ConfigDict(extra="forbid"))(shape)
    for field in fields(shape):
        for part in getattr(field.type, "__args__", (field.type,)):
            if is_dataclass(part):
                _strict(part)
