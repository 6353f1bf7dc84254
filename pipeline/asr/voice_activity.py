"""Is somebody speaking? Silero VAD, one 32 ms window at a time."""

from importlib import resources

import numpy as np
import onnxruntime

from pipeline.errors import MissingModelError
from pipeline.events import HEARING_RATE, Samples
from pipeline.packaged import network

WINDOW = 512
"""Samples a decision, 32 ms at HEARING_RATE; the model accepts no other size."""

WINDOW_SECONDS = WINDOW / HEARING_RATE

_CONTEXT = 64
_STATE = (1, 1, 128)

_QUIET = 0.1
"""Probability below which a window holds no speech."""
_FORGETS_AFTER = round(2.0 / WINDOW_SECONDS)
"""Windows of quiet in a row. The network's memory of a long silence makes it doubt what comes next: 6 s after
an utterance the beginnings of 30 others were onsets after 192 ms (p90 256, two of 90 never) with it, after
160 ms (p90 192 to 224, none missed) with a memory of at most 2 s. Noise is no likelier to be taken for speech
(at most 0.16 instead of 0.10)."""


def load_model() -> onnxruntime.InferenceSession:
    """The Silero v6 network that faster-whisper ships, to be shared by all sessions."""
    file = resources.files("faster_whisper") / "assets" / "silero_vad_v6.onnx"
    if not file.is_file():
        raise MissingModelError(
            "the Silero VAD file silero_vad_v6.onnx is not in the installed faster-whisper; "
            "install the pinned version: pip install -c requirements/constraints.txt faster-whisper"
        )
    return network(file.read_bytes())


class VoiceActivity:
    """Speech probability of one stream of audio; the network's memory is this stream's own.

    Runs where it is called. A window takes about 0.15 ms, less than a hop to a thread and back, and
    that hop for every window is what made another system fall ever further behind
    (reference: pipecat issue 3218).
    """

    def __init__(self, model: onnxruntime.InferenceSession) -> None:
        self._model = model
        self.reset()

    def reset(self) -> None:
        """Forget the stream so far."""
        self._hidden = np.zeros(_STATE, np.float32)
        self._cell = np.zeros(_STATE, np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)
        self._quiet = 0

    def probability(self, window: Samples) -> float:
        """Probability in [0, 1] that a window of WINDOW samples holds speech."""
        if window.shape != (WINDOW,):
            raise ValueError(f"a window has {WINDOW} samples, got shape {window.shape}")
        if self._quiet == _FORGETS_AFTER:
            self.reset()
        audio = np.concatenate((self._context, window)).astype(np.float32, copy=False)[None]
        probability, self._hidden, self._cell = self._model.run(
            None, {"input": audio, "h": self._hidden, "c": self._cell}
        )
        self._context = window[-_CONTEXT:].copy()
        found = float(probability.reshape(-1)[0])
        self._quiet = self._quiet + 1 if found < _QUIET else 0
        return found
