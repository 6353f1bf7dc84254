"""Settings of the language model's engines: ours, and those of others."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from services.config.fields import FilePath, HttpUrl, Threads
from services.config.section import Section


class EmbeddedEngine(Section):
    model: FilePath | None = None
    threads: Threads = 1
    requantise: bool = True
    pattern: Literal["colocated", "split"] = "colocated"


class OpenAIEndpoint(Section):
    base_url: HttpUrl | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    api_key: SecretStr | None = None


class VllmEngine(Section):
    url: HttpUrl | None = None
    weights: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    precision: Annotated[str, Field(min_length=1)] | None = None


class VllmNixl(Section):
    prefill: VllmEngine = VllmEngine()
    decode: VllmEngine = VllmEngine()
    model: Annotated[str, Field(min_length=1)] | None = None
    api_key: SecretStr | None = None
    contract: FilePath | None = None
