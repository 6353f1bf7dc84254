"""Does it sound finished? Smart Turn v3.2, a network that hears whether a speaker is done.

The file is a resource of the wheel `pipecat-ai` (BSD-2-Clause), which is installed without its dependencies
and never imported. Input: Whisper's 80 log-mel bands of the last 8 s, padded in front with silence, of a
waveform with mean 0 and variance 1 (as pipecat's `LocalSmartTurnAnalyzerV3` prepares it; faster-whisper's
extractor gives the same features to 3e-6). A run takes about 70 ms on one thread, 116 ms on two.
"""

import asyncio
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor

from pipeline.events import HEARING_RATE, Samples
from pipeline.packaged import network, packaged_file

_SECONDS = 8
_SAMPLES = _SECONDS * HEARING_RATE
_FILE = Path("audio", "turn", "smart_turn", "data", "smart-turn-v3.2-cpu.onnx")


def packaged_model() -> Path:
    """The network's file in the package pipecat-ai. Raises MissingModelError."""
    return packaged_file("pipecat", _FILE, "the turn detector", "pipecat-ai")


class SmartTurn:
    """A `TurnEndDetector`; one network for all sessions. Runs on the executor it is given."""

    def __init__(self, executor: Executor, model: Path | None = None) -> None:
        """`model` None: the packaged one. Raises MissingModelError."""
        self._session = network(model or packaged_model())
        self._features = FeatureExtractor(chunk_length=_SECONDS)
        self._executor = executor

    async def finished(self, samples: Samples) -> float:
        """Probability that who said this is done."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._finished, samples)

    def _finished(self, samples: Samples) -> float:
        samples = samples[-_SAMPLES:]
        audio = np.pad(samples, (_SAMPLES - len(samples), 0))
        audio = (audio - audio.mean()) / np.sqrt(audio.var() + 1e-7)
        features = self._features(audio.astype(np.float32), padding=0)[None].astype(np.float32)
        (answer,) = self._session.run(None, {"input_features": features})
        return float(answer.reshape(-1)[0])
