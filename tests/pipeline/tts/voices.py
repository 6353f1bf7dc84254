"""Voices of a few numbers: graphs with the seams of a real one."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pipeline.tts.voice_files import VoiceFiles


def voice_model(
    name: str = "v", durations: str = "Ceil", flow: str = "/flow/", weight: str = "dec.conv_pre.weight"
) -> onnx.ModelProto:
    """Inputs and outputs of all parts have the shape of the one input, (n,)."""
    nodes = [
        helper.make_node(durations, ["input"], ["widths"]),
        helper.make_node("Div", ["widths", "widths"], ["mask"]),
        helper.make_node("Add", ["input", "widths"], ["prior"]),
        helper.make_node("Neg", ["prior"], ["flowed"], name=f"{flow}flows.0/Neg"),
        helper.make_node("Mul", ["flowed", "mask"], ["masked"], name=f"{flow}flows.0/Mul"),
        helper.make_node("Mul", ["masked", "mask"], ["latent"]),
        helper.make_node("Mul", ["latent", weight], ["audio"], name="/dec/conv_pre/Conv"),
    ]
    given, made, *inside = (
        helper.make_tensor_value_info(tensor, TensorProto.FLOAT, ["n"])
        for tensor in ("input", "audio", "prior", "mask", "latent")
    )
    weights = [numpy_helper.from_array(np.full(1, 3, np.float32), weight)]
    graph = helper.make_graph(nodes, name, [given], [made], weights, value_info=inside)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def write_voice(folder: Path, name: str = "v", durations: str = "Ceil", flow: str = "/flow/") -> VoiceFiles:
    files = VoiceFiles(folder / "voice.onnx", folder / "voice.onnx.json")
    onnx.save(voice_model(name, durations, flow), files.model)
    files.config.write_text("{}")
    return files
