"""What is wrong with a setting, in words: where it stands, its key and value, what was expected.

A setting's JSON schema says what was expected, so no sentence has to be written twice. Values of
secrets never get into a sentence.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic_core import ErrorDetails, PydanticCustomError

Key = tuple[str | int, ...]
Schema = Mapping[str, Any]

SECRET_NAME = re.compile("key|secret|token|pass|credential|auth", re.IGNORECASE)
USER_INFO = re.compile(r"//[^/@\s]+@")
LONGEST_VALUE = 60


class Origins(Protocol):
    def origin(self, key: Key) -> str:
        """Where the value of a key was read, for a person."""
        ...

    def value(self, key: Key, default: object) -> object:
        """The value as it was read, `default` where it was not given."""
        ...


@dataclass(frozen=True, slots=True)
class Fault:
    where: str
    key: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.key} {self.problem}"


def describe(faults: Sequence[Fault]) -> str:
    """All faults as one message, a line each."""
    lines = [str(fault) for fault in faults]
    if len(lines) == 1:
        return lines[0]
    return "\n".join([f"{len(lines)} settings are wrong:", *(f"  {line}" for line in lines)])


def expect(expected: str | None, *, key: str = "") -> PydanticCustomError:
    """A validator's complaint: `expected` in words (None: the schema's own), `key` below its section."""
    return PydanticCustomError("expected", "unexpected value", {"expected": expected, "key": key})


def explain(detail: ErrorDetails, schema: Schema, origins: Origins) -> Fault:
    """One of pydantic's complaints as a fault."""
    context = detail.get("ctx", {})
    below = context.get("key") or ""
    key: Key = (*detail["loc"], *below.split(".")) if below else detail["loc"]
    if detail["type"] == "extra_forbidden":
        return unknown_key(key, schema, origins)
    node = find(schema, key)
    value = origins.value(key, (node or {}).get("default")) if below else detail["input"]
    if detail["type"] == "missing":
        problem = f"is missing; expected {expectation(schema, node)}"
    else:
        expected = context.get("expected") if detail["type"] == "expected" else None
        problem = f"is {shown(value, schema, node)}; expected {expected or expectation(schema, node)}"
        problem += _nearest_choice(value, node)
    return Fault(origins.origin(key), dotted(key), problem)


def unknown_key(key: Key, schema: Schema, origins: Origins) -> Fault:
    """A fault for a key that the tree does not have, with the nearest that it has."""
    nearest = _nearest_key(key, schema)
    beside = (find(schema, (*key[:-1], name)) for name in _names(schema, key[:-1]))
    near_secret = any(map(_is_secret, beside)) or _is_secret(find(schema, nearest))
    value = origins.value(key, None)
    hidden = isinstance(value, dict | list) or near_secret or SECRET_NAME.search(str(key[-1]))
    stated = "" if hidden else f" (value {_short(value)})"
    advice = f"the nearest is {dotted(nearest)}" if nearest else _takes(key[:-1], schema)
    return Fault(origins.origin(key), dotted(key), f"is not a setting{stated}; {advice}")


def dotted(key: Key) -> str:
    return ".".join(str(part) for part in key)


def find(schema: Schema, key: Key) -> Schema | None:
    """The schema of a key, None when the tree has no such key."""
    node = schema
    for part in key:
        child = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
        if child is None:
            return None
        node = _resolved(schema, child)
    return node


def shown(value: object, schema: Schema, node: Schema | None) -> str:
    """A value for a message; hidden when it is a secret or holds one."""
    if value is not None and _has_secret(schema, node):
        return "a value not shown here"
    if isinstance(value, dict):
        return "a section"
    return _short(value)


def expectation(schema: Schema, node: Schema | None) -> str:
    """What a schema accepts, in words: "a whole number, at least 1, at most 64"."""
    if node is None:
        return "nothing here"
    if "enum" in node:
        return "one of " + ", ".join(map(str, node["enum"]))
    limits = [wording.format(node[name]) for name, wording in _LIMITS.items() if name in node]
    return ", ".join([_kind(schema, node), *limits]) + (" or null" if node.get("nullable") else "")


_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} of them",
}

_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a section of keys",
    "string": "text, in quotes if YAML takes it for something else",
}


def _kind(schema: Schema, node: Schema) -> str:
    if node.get("type") == "array":
        return f"a list, each {expectation(schema, _resolved(schema, node['items']))}"
    if node.get("format") == "path":
        return "a path"
    return _KINDS[node["type"]]


def _resolved(schema: Schema, node: Schema) -> Schema:
    """A node with its reference followed and "or null" folded into `nullable`."""
    if "anyOf" in node:
        (branch,) = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
        return {**_resolved(schema, branch), "nullable": True}
    if "$ref" in node:
        target: Schema = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
        return target
    return node


def _is_secret(node: Schema | None) -> bool:
    return node is not None and node.get("format") == "password"


def _has_secret(schema: Schema, node: Schema | None) -> bool:
    """Whether a setting, or one below it, is a secret."""
    if node is None:
        return False
    children = [*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])]
    return _is_secret(node) or any(_has_secret(schema, _resolved(schema, child)) for child in children)


def _short(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = USER_INFO.sub("//…@", value if isinstance(value, str) else str(value))
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _nearest_choice(value: object, node: Schema | None) -> str:
    near = difflib.get_close_matches(str(value), (node or {}).get("enum", []), n=1)
    return f"; the nearest is {near[0]}" if near else ""


def _nearest_key(key: Key, schema: Schema) -> Key:
    """The key of the tree that was probably meant: a sibling, else one elsewhere; () for none."""
    name, section = str(key[-1]), key[:-1]
    if near := difflib.get_close_matches(name, _names(schema, section), n=1):
        return (*section, near[0])
    everywhere = {leaf[-1]: leaf for leaf in _leaves(schema)}
    near = difflib.get_close_matches(name, everywhere, n=1)
    return everywhere[near[0]] if near else ()


def _takes(section: Key, schema: Schema) -> str:
    return f"{dotted(section) or 'the file'} takes {', '.join(_names(schema, section)) or 'no keys'}"


def _names(schema: Schema, section: Key) -> list[str]:
    return list((find(schema, section) or {}).get("properties", {}))


def _leaves(schema: Schema, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of the tree that holds a value."""
    for name in _names(schema, above):
        key = (*above, name)
        children = list(_leaves(schema, key))
        yield from children or [key]
