"""A Piper voice's network cut in three, so that a clause's first words can be made before its last.

A VITS network (Kim, Kong and Son 2021, "Conditional variational autoencoder with adversarial learning
for end-to-end text-to-speech") is a text part that decides how long everything lasts, and two
convolutional parts that do nearly all of the work frame by frame: the flow and the decoder.
"""

from collections.abc import Iterable
from typing import Any

TEXT, FLOW, DECODER = PARTS = ("text", "flow", "decoder")
"""text: ids, lengths, scales → prior (1, channels, frames), frames for each id (1, 1, ids).
flow: prior, mask (1, 1, frames) → latent (1, channels, frames).
decoder: latent → audio (1, 1, 1, samples)."""

_DECODER_WEIGHT = "dec.conv_pre.weight"
_FLOW_NODES = "/flow/"


def split(model: Any) -> dict[str, Any]:
    """The parts of a voice, an ONNX model each, by name. `model` is left with a second output.

    Raises ValueError when the network is not built as expected, for example for several speakers.
    """
    from onnx.utils import Extractor
    from piper.patch_voice_with_alignment import add_alignment_output

    widths = add_alignment_output(model)
    prior, mask, latent = _seams(model.graph)
    extractor = Extractor(model)
    inputs = [tensor.name for tensor in model.graph.input]
    parts = {
        TEXT: extractor.extract_model(inputs, [prior, widths]),
        FLOW: extractor.extract_model([prior, mask], [latent]),
        DECODER: extractor.extract_model([latent], [model.graph.output[0].name]),
    }
    for name, part in parts.items():
        if missing := _missing(part.graph):
            raise ValueError(f"its {name} part needs {', '.join(sorted(missing))}")
    return parts


def _seams(graph: Any) -> tuple[str, str, str]:
    """The tensors between the parts: prior, mask, latent."""
    latents = [node.input[0] for node in graph.node if _DECODER_WEIGHT in node.input]
    if len(latents) != 1:
        raise ValueError(f"expected one layer with {_DECODER_WEIGHT}, found {len(latents)}")
    varying = _reached(graph, (tensor.name for tensor in graph.input))
    flow = [node for node in graph.node if node.name.startswith(_FLOW_NODES)]
    inside = _reached(graph, (output for node in flow for output in node.output))
    given = {name for node in flow for name in node.input if name in varying and name not in inside}
    masking = next((node for node in graph.node if latents[0] in node.output), None)
    masks = given & set(masking.input) if masking is not None else set()
    priors = given - masks
    if len(masks) != 1 or len(priors) != 1:
        raise ValueError(f"expected a flow of one prior and one mask, found {sorted(given)}")
    return priors.pop(), masks.pop(), latents[0]


def _reached(graph: Any, sources: Iterable[str]) -> set[str]:
    """Tensors that depend on any of `sources`, those included. Nodes are in order, as ONNX demands."""
    reached = set(sources)
    for node in graph.node:
        if not reached.isdisjoint(node.input):
            reached.update(node.output)
    return reached


def _missing(graph: Any) -> set[str]:
    there = {tensor.name for tensor in (*graph.input, *graph.initializer)} | {""}
    there.update(output for node in graph.node for output in node.output)
    return {name for node in graph.node for name in node.input} - there
