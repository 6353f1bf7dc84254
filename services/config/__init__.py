"""The configuration: one typed tree, read from one YAML file, environment and command line.

`load` is the way in; `tree.py` holds the settings, `sources.py` reads them and knows where each
value came from, `faults.py` puts what is wrong into words.
"""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from pipeline.errors import ConfigError
from services.config.faults import describe, explain
from services.config.sources import Sources
from services.config.tree import Config

__all__ = ["Config", "load"]


def load(path: Path | None = None, overrides: Mapping[str, object] | None = None) -> Config:
    """The settings a command starts with.

    `path` is a YAML file, None the packaged configs/local.yaml. `overrides` are command-line
    options by dotted key: {"server.port": 9000}. Raises ConfigError naming every fault found.
    """
    schema = Config.model_json_schema()
    sources = Sources(path, overrides or {}, schema)
    try:
        config = Config(**sources.merged)
    except ValidationError as error:
        found = [explain(detail, schema, sources) for detail in error.errors(include_url=False)]
        raise ConfigError(describe([*sources.faults, *found])) from None
    if sources.faults:
        raise ConfigError(describe(sources.faults))
    return config
