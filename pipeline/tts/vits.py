"""Runs the network of a Piper voice: phoneme ids → audio, no further than it is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from piper import PiperConfig, PiperVoice, SynthesisConfig

from pipeline.events import Samples

Widths = npt.NDArray[np.int64]
"""Samples that each phoneme id lasts, shape (ids,)."""

DECODER_REACH = 10
"""Frames to either side that a decoded frame depends on. Measured on en_US-joe, as the largest error
against the peak over 66 cuts: −112 dB with 10, −65 dB with 9, −55 dB with 8."""

FLOW_REACH = 24
"""The same for a frame of the flow: −77 dB with 24, −46 dB with 22; 32 is all that it can see."""


class Run(Protocol):
    """The audio of one run of the network."""

    length: int
    """Samples."""
    widths: Widths | None
    """None when the voice does not tell."""

    def until(self, stop: int) -> Samples:
        """From where the call before ended to at least sample `stop`, or to the end."""
        ...


class Network(Protocol):
    @property
    def in_pieces(self) -> bool:
        """Whether the beginning of a run's audio is made sooner than all of it."""
        ...

    def begin(self, ids: Sequence[int], synthesis: SynthesisConfig) -> Run: ...


class WholeNetwork:
    """A voice in one file: everything is made at the beginning."""

    in_pieces = False

    def __init__(self, voice: PiperVoice) -> None:
        self._voice = voice

    def begin(self, ids: Sequence[int], synthesis: SynthesisConfig) -> Run:
        result = self._voice.phoneme_ids_to_audio(list(ids), synthesis, include_alignments=True)
        samples, widths = result if isinstance(result, tuple) else (result, None)
        return _WholeRun(samples, widths)


class _WholeRun:
    def __init__(self, samples: Samples, widths: Widths | None) -> None:
        self.length = len(samples)
        self.widths = widths
        self._left = samples

    def until(self, stop: int) -> Samples:
        left, self._left = self._left, self._left[:0]
        return left


@dataclass(frozen=True, slots=True)
class SplitNetwork:
    """A voice in the parts of `voice_graph`, each an onnxruntime session."""

    config: PiperConfig
    text: Any
    flow: Any
    decoder: Any

    @property
    def in_pieces(self) -> bool:
        return True

    def begin(self, ids: Sequence[int], synthesis: SynthesisConfig) -> Run:
        config = self.config
        scales = [
            own if wanted is None else wanted
            for wanted, own in (
                (synthesis.noise_scale, config.noise_scale),
                (synthesis.length_scale, config.length_scale),
                (synthesis.noise_w_scale, config.noise_w_scale),
            )
        ]
        prior, frames = _run(
            self.text, np.array([ids], np.int64), np.array([len(ids)], np.int64), np.array(scales, np.float32)
        )
        return _SplitRun(self, prior, frames.reshape(-1).astype(np.int64) * config.hop_length)


class _SplitRun:
    def __init__(self, network: SplitNetwork, prior: Samples, widths: Widths) -> None:
        self._network = network
        self._hop: int = network.config.hop_length
        self._prior = prior
        self._latent = prior[:, :, :0]
        self._frames = prior.shape[2]
        self._decoded = 0
        self.length = self._frames * self._hop
        self.widths: Widths | None = widths

    def until(self, stop: int) -> Samples:
        end = min(-(-stop // self._hop), self._frames)
        if end <= self._decoded:
            return np.zeros(0, np.float32)
        begin = max(0, self._decoded - DECODER_REACH)
        latent = self._latent_until(min(end + DECODER_REACH, self._frames))[:, :, begin:]
        audio = _run(self._network.decoder, latent)[0].reshape(-1)
        samples = audio[(self._decoded - begin) * self._hop : (end - begin) * self._hop]
        self._decoded = end
        return samples

    def _latent_until(self, end: int) -> Samples:
        known = self._latent.shape[2]
        if end > known:
            begin = max(0, known - FLOW_REACH)
            prior = self._prior[:, :, begin : end + FLOW_REACH]
            (latent,) = _run(self._network.flow, prior, np.ones((1, 1, prior.shape[2]), np.float32))
            self._latent = np.concatenate((self._latent, latent[:, :, known - begin : end - begin]), axis=2)
        return self._latent


def _run(session: Any, *inputs: npt.NDArray[Any]) -> list[Samples]:
    names = [tensor.name for tensor in session.get_inputs()]
    outputs: list[Samples] = session.run(None, dict(zip(names, inputs, strict=True)))
    return outputs
