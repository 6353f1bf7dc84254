import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pipeline.tts.voice_graph import DECODER, FLOW, PARTS, TEXT, split
from tests.pipeline.tts.voices import voice_model


def names(values: object) -> list[str]:
    return [value.name for value in values]  # type: ignore[attr-defined]


def test_the_parts_join_where_the_network_does() -> None:
    parts = split(voice_model())
    assert sorted(parts) == sorted(PARTS)
    sides = {name: (names(part.graph.input), names(part.graph.output)) for name, part in parts.items()}
    assert sides == {
        TEXT: (["input"], ["prior", "widths"]),
        FLOW: (["prior", "mask"], ["latent"]),
        DECODER: (["latent"], ["audio"]),
    }


def test_the_parts_compute_what_the_whole_did() -> None:
    whole = _session(voice_model())
    given = np.array([0.5, 1.5, -2.0], np.float32)
    parts = {name: _session(part) for name, part in split(voice_model()).items()}
    prior, widths = parts[TEXT].run(None, {"input": given})
    (latent,) = parts[FLOW].run(None, {"prior": prior, "mask": np.ones(3, np.float32)})
    (audio,) = parts[DECODER].run(None, {"latent": latent})
    np.testing.assert_array_equal(audio, whole.run(None, {"input": given})[0])
    np.testing.assert_array_equal(widths, np.ceil(given))


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_a_network_without_durations_is_refused() -> None:
    with pytest.raises(ValueError, match="ceil"):
        split(voice_model(durations="Floor"))


def test_a_network_without_the_known_decoder_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dec\.conv_pre\.weight, found 0"):
        split(voice_model(weight="another"))


def test_a_network_without_the_known_flow_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a flow"):
        split(voice_model(flow="/other/"))


def test_a_speaker_given_to_the_decoder_is_refused() -> None:
    model = voice_model()
    decoder = model.graph.node[-1]
    model.graph.node.append(helper.make_node("Add", [decoder.output[0], "speaker"], ["voiced"]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "table"))
    model.graph.input.append(helper.make_tensor_value_info("sid", TensorProto.FLOAT, [1]))
    model.graph.node.append(helper.make_node("Mul", ["table", "sid"], ["speaker"]))
    model.graph.output[0].name = "voiced"
    with pytest.raises(ValueError, match="decoder part needs sid"):
        split(model)
