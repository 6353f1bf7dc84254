"""YAML files that people write; what is wrong with one is told by file, line and column."""

from importlib import resources
from pathlib import Path

import yaml

from pipeline.errors import ConfigError


def read(path: Path | None, packaged: str, expected: str) -> tuple[str, str]:
    """A file's name, for messages, and its text; None is `packaged` of configs/. Raises ConfigError."""
    if path is None:
        text = resources.files("configs").joinpath(packaged).read_text(encoding="utf-8")
        return f"configs/{packaged} (packaged)", text
    try:
        return str(path), path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; expected {expected}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); expected {expected}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); expected {expected}") from None


def parse(name: str, text: str) -> tuple[yaml.Node | None, object]:
    """The document and what is in it; both None for an empty one. Raises ConfigError."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{name}{place}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-13-01
        raise ConfigError(f"{name}: not valid YAML: {error}") from None
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """Refuses aliases: settings need none, and one can make a document endless."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_mark()
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not supported here", mark)
        return super().compose_node(parent, index)
