"""Where settings are read: a YAML file, the environment, the command line. Each value's origin is kept."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic_settings import EnvSettingsSource

from pipeline.errors import ConfigError
from services.config import yaml_file
from services.config.faults import Fault, Key, Schema, expectation, find, unknown_key
from services.config.tree import Config

Tree = dict[str, Any]

PREFIX = "VISAVIS_"
DELIMITER = "__"


class Sources:
    """What was read, merged, and where each value of it came from.

    `faults` are those found while reading: variables that name no setting, or are not JSON where a
    setting is a list. Raises ConfigError when the file cannot be read at all.
    """

    def __init__(self, path: Path | None, overrides: Mapping[str, object], schema: Schema) -> None:
        self.merged: Tree = {}
        self.faults: list[Fault] = []
        self._origins: dict[Key, str] = {}
        self._add_file(path, schema)
        self._add_environment(schema)
        for key, value in overrides.items():
            option = key.rpartition(".")[2].replace("_", "-")
            self._put(tuple(key.split(".")), value, f"command line, --{option}")

    def origin(self, key: Key) -> str:
        """Where the value of a key, or else of the nearest section around it, was read."""
        for length in range(len(key), 0, -1):
            if key[:length] in self._origins:
                return self._origins[key[:length]]
        return self._origins[()]

    def value(self, key: Key, default: object) -> object:
        """The merged value of a key, `default` where it was not given."""
        value: Any = self.merged
        for part in key:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return default
        return value

    def _put(self, key: Key, value: object, origin: str) -> None:
        section: Tree = self.merged
        for part in key[:-1]:
            inner = section.get(str(part))
            if not isinstance(inner, dict):
                inner = section[str(part)] = {}
            section = inner
        section[str(key[-1])] = value
        self._origins[key] = origin

    def _add_file(self, path: Path | None, schema: Schema) -> None:
        name, text = yaml_file.read(path, "local.yaml", "a YAML file of settings")
        self._origins[()] = name
        node, data = yaml_file.parse(name, text)
        if data is None:
            return
        if not isinstance(data, dict):
            raise ConfigError(f"{name}: expected a mapping of sections, found {type(data).__name__}")
        seen: set[Key] = set()
        for key, line in _keys(node):
            where = f"{name}, line {line}"
            if key in seen:
                self.faults.append(Fault(where, ".".join(map(str, key)), "stands there twice; keep one"))
            seen.add(key)
            self._origins[key] = where
        self.merged = _without_empty_sections(data, schema)

    def _add_environment(self, schema: Schema) -> None:
        source = EnvSettingsSource(Config)
        accepted: dict[str, str | None] = {}
        for variable in sorted(name for name in os.environ if name.upper().startswith(PREFIX)):
            key: Key = tuple(variable[len(PREFIX) :].lower().split(DELIMITER))
            if (fault := _variable_fault(variable, key, schema)) is None:
                accepted[variable.lower()] = source.env_vars[variable.lower()]
            else:
                self.faults.append(fault)
        source.env_vars = accepted
        for key, value in _values(source()):
            self._put(key, value, f"environment, {PREFIX}{DELIMITER.join(map(str, key)).upper()}")


class _Variable:
    """The origin of a variable that could not be used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def origin(self, key: Key) -> str:
        return f"environment, {self._name}"

    def value(self, key: Key, default: object) -> object:
        return os.environ[self._name]


def _variable_fault(variable: str, key: Key, schema: Schema) -> Fault | None:
    node = find(schema, key)
    if node is None:
        return unknown_key(key, schema, _Variable(variable))
    if node["type"] in ("array", "object"):
        try:
            json.loads(os.environ[variable])
        except ValueError:
            expected = f"is not JSON; expected {expectation(schema, node)}"
            return Fault(f"environment, {variable}", ".".join(map(str, key)), expected)
    return None


def _keys(node: yaml.Node | None, above: Key = ()) -> Iterator[tuple[Key, int]]:
    """Every key of a document with its line, counted from 1."""
    if isinstance(node, yaml.MappingNode):
        for name, child in node.value:
            if isinstance(name, yaml.ScalarNode):
                key = (*above, name.value)
                yield key, name.start_mark.line + 1
                yield from _keys(child, key)
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield (*above, index), child.start_mark.line + 1
            yield from _keys(child, (*above, index))


def _without_empty_sections(data: Mapping[Any, Any], schema: Schema, above: Key = ()) -> Tree:
    """A section whose keys are all commented out is YAML's null; the defaults are meant."""
    kept: Tree = {}
    for name, value in data.items():
        key = (*above, str(name))
        node = find(schema, key)
        if isinstance(value, dict):
            kept[str(name)] = _without_empty_sections(value, schema, key)
        elif value is not None or node is None or node.get("type") != "object":
            kept[str(name)] = value
    return kept


def _values(tree: Mapping[str, Any], above: Key = ()) -> Iterator[tuple[Key, object]]:
    for name, value in tree.items():
        key = (*above, name)
        if isinstance(value, dict):
            yield from _values(value, key)
        else:
            yield key, value
