"""Reads a folder of text documents into passages, with who may see them.

A folder holds `.txt` and `.md` files, at any depth. Who may see what stands in `access.yaml` at its top:

    documents:
      opening-hours.md: {tenants: ["*"], roles: ["*"]}
      hr/salaries.txt:  {tenants: [acme], roles: [manager, auditor]}

Both a document's tenants and its roles must name the asker, or be "*". With the file there, a document
it does not list is seen by nobody; without it, every document by everybody.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipeline.errors import ConfigError

ACCESS_FILE = "access.yaml"
EVERYBODY = "*"
SUFFIXES = frozenset({".txt", ".md"})

PASSAGE_WORDS = 120
"""The most words of a passage: about 160 tokens."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may see a document."""

    tenants: frozenset[str]
    roles: frozenset[str]

    def admits(self, tenant: str, role: str) -> bool:
        return bool(self.tenants & {tenant, EVERYBODY}) and bool(self.roles & {role, EVERYBODY})


NOBODY = Access(frozenset(), frozenset())
ANYBODY = Access(frozenset({EVERYBODY}), frozenset({EVERYBODY}))


@dataclass(frozen=True, slots=True)
class Document:
    """One file."""

    name: str
    """Path in the folder, with forward slashes."""
    passages: tuple[str, ...]
    access: Access


def read_folder(folder: Path) -> list[Document]:
    """All documents of a folder, by name. Raises ConfigError with the path and the reason."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: expected a folder of .txt and .md files")
    try:
        files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
        texts = {path.relative_to(folder).as_posix(): _read(path) for path in files}
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror}") from error
    if not texts:
        raise ConfigError(f"{folder}: no .txt or .md file in it")
    access = _read_access(folder / ACCESS_FILE, texts)
    return [Document(name, tuple(passages(text)), access[name]) for name, text in texts.items()]


def passages(text: str) -> list[str]:
    """A text cut into passages of at most PASSAGE_WORDS words: whole paragraphs, as many as fit; a longer
    paragraph is cut at words."""
    found: list[str] = []
    current: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = paragraph.split()
        if current and len(current) + len(words) > PASSAGE_WORDS:
            found.append(" ".join(current))
            current = []
        current += words
        while len(current) > PASSAGE_WORDS:
            found.append(" ".join(current[:PASSAGE_WORDS]))
            current = current[PASSAGE_WORDS:]
    if current:
        found.append(" ".join(current))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: expected UTF-8 text ({error.reason} at byte {error.start})") from error


def _read_access(path: Path, names: Mapping[str, str]) -> dict[str, Access]:
    if not path.exists():
        return dict.fromkeys(names, ANYBODY)
    try:
        tree = yaml.safe_load(_read(path))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML ({error})") from error
    listed = tree.get("documents") if isinstance(tree, dict) and set(tree) == {"documents"} else None
    if not isinstance(listed, dict):
        raise ConfigError(f"{path}: expected the key documents, and under it one key per document")
    # A rule for a file that is not there is a typing mistake that would leave the real one hidden.
    unknown = [str(name) for name in listed if name not in names]
    if unknown:
        raise ConfigError(f"{path}: {', '.join(unknown)}: no such .txt or .md file in the folder")
    return dict.fromkeys(names, NOBODY) | {name: _rule(path, name, rule) for name, rule in listed.items()}


def _rule(path: Path, name: str, rule: Any) -> Access:
    if not isinstance(rule, dict) or set(rule) != {"tenants", "roles"}:
        raise ConfigError(f"{path}: {name}: expected the two keys tenants and roles")
    return Access(_names(path, name, "tenants", rule), _names(path, name, "roles", rule))


def _names(path: Path, name: str, key: str, rule: Mapping[str, Any]) -> frozenset[str]:
    names: Sequence[Any] = rule[key]
    if not isinstance(names, list) or not all(isinstance(entry, str) for entry in names):
        raise ConfigError(f'{path}: {name}: {key}: expected a list of names, or ["*"] for everybody')
    return frozenset(names)
