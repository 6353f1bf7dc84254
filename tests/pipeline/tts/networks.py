"""A network in three parts with the reach of a real one, and nothing to learn."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from pipeline.tts.vits import DECODER_REACH, FLOW_REACH

HOP = 256


class _Part:
    def __init__(self, run: Any, *inputs: str) -> None:
        self._run = run
        self._inputs = inputs

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in self._inputs]

    def run(self, outputs: None, given: dict[str, np.ndarray]) -> list[np.ndarray]:
        return list(self._run(*(given[name] for name in self._inputs)))


def spread(signal: np.ndarray, reach: int) -> np.ndarray:
    """Every value depends on `reach` values to either side, with zeros beyond the ends."""
    return np.convolve(np.pad(signal, reach), np.linspace(1, 2, 2 * reach + 1) / (3 * reach), "valid")


class SplitTone:
    """A loud signal without a pause, `frames` hops long for every phoneme id."""

    def __init__(self, frames: int = 5, miscount: int = 0, fail_after: int | None = None) -> None:
        self.begun = 0
        self.scales: list[float] = []
        self.decoded = 0
        """Frames that the decoder was given so far."""
        self._frames = frames
        self._miscount = miscount
        self._decodes_left = fail_after
        self.text = _Part(self._speak, "ids", "lengths", "scales")
        self.flow = _Part(self._flow, "prior", "mask")
        self.decoder = _Part(self._decode, "latent")

    def _speak(self, ids: np.ndarray, lengths: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, ...]:
        assert ids.shape == (1, *lengths)
        self.begun += 1
        self.scales = scales.tolist()
        prior = np.random.default_rng(self.begun).uniform(0.3, 0.5, ids.size * self._frames)
        widths = np.full((1, 1, ids.size - self._miscount), self._frames, np.float32)
        return prior.astype(np.float32)[None, None], widths

    def _flow(self, prior: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray]:
        assert mask.shape == (1, 1, prior.shape[2])
        assert mask.all()
        return (spread(prior[0, 0], FLOW_REACH).astype(np.float32)[None, None],)

    def _decode(self, latent: np.ndarray) -> tuple[np.ndarray]:
        if self._decodes_left is not None:
            self._decodes_left -= 1
            if self._decodes_left < 0:
                raise Fail("out of memory")
        self.decoded += latent.shape[2]
        audio = np.repeat(spread(latent[0, 0], DECODER_REACH), HOP)
        return (audio.astype(np.float32)[None, None, None],)
