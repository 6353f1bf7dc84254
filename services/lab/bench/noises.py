"""Sounds of a listener that are no turn: a cough, and "mm-hm"."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.audible import Run
from pipeline.events import WIRE_RATE, Pcm
from services.lab.speech_file import SpeechFile

COUGH_SECONDS = 0.15
MM_HM_SECONDS = 0.40

_COUGH_BANDS = ((500.0, 180.0, 1.0), (1500.0, 350.0, 0.7), (3200.0, 900.0, 0.35))
"""Centre, width (Hz) and weight of a cough's formant-like bands."""

_LEVEL_DBFS = -20.0

Signal = npt.NDArray[np.float64]


def cough(seed: int) -> SpeechFile:
    """A 150 ms burst: noise through three bands, a hard attack and a decay, each a little different."""
    rng = np.random.default_rng(seed)
    samples = round(COUGH_SECONDS * WIRE_RATE)
    noise = np.fft.rfft(rng.standard_normal(samples))
    hertz = np.fft.rfftfreq(samples, 1 / WIRE_RATE)
    shift = float(rng.uniform(0.85, 1.15))
    bands = [
        weight * np.exp(-0.5 * ((hertz - centre * shift) / width) ** 2)
        for centre, width, weight in _COUGH_BANDS
    ]
    burst = np.fft.irfft(noise * np.sum(bands, axis=0), samples)
    seconds = np.arange(samples) / WIRE_RATE
    envelope = np.minimum(1.0, seconds / 0.008) * np.exp(-seconds / 0.07)
    return _file("cough", burst * envelope)


def mm_hm(seed: int) -> SpeechFile:
    """400 ms of a closed mouth: two hums with a breath between them, the second one higher."""
    rng = np.random.default_rng(seed)
    pitch = float(rng.uniform(95, 190))
    seconds = np.arange(round(MM_HM_SECONDS * WIRE_RATE)) / WIRE_RATE
    second = seconds > 0.21
    melody = np.where(second, pitch * (1.12 + 0.3 * (seconds - 0.21)), pitch * (1.0 - 0.15 * seconds))
    phase = 2 * np.pi * np.cumsum(melody) / WIRE_RATE
    # Nasal: the fundamental and little above 500 Hz.
    hum = np.sum([np.sin(k * phase) / k**1.8 for k in range(1, 9)], axis=0)
    first_hum = np.clip(np.minimum(seconds / 0.03, (0.18 - seconds) / 0.03), 0, 1)
    second_hum = np.clip(np.minimum((seconds - 0.21) / 0.03, (MM_HM_SECONDS - seconds) / 0.05), 0, 1)
    breath = 0.04 * rng.standard_normal(len(seconds)) * np.clip(1 - np.abs(seconds - 0.2) / 0.03, 0, 1)
    return _file("mm-hm", hum * np.maximum(first_hum, second_hum) + breath)


def _file(name: str, signal: Signal) -> SpeechFile:
    """At the level of speech, with 100 ms of quiet around it."""
    rms = float(np.sqrt(np.mean(signal * signal)))
    loud = signal * min(10 ** (_LEVEL_DBFS / 20) / rms, 0.9 / float(np.abs(signal).max()))
    edge = np.zeros(WIRE_RATE // 10)
    pcm: Pcm = np.asarray(np.concatenate((edge, loud, edge)) * 32767, np.int16)
    return SpeechFile(Path(f"{name}.wav"), pcm, Run(len(edge), len(edge) + len(signal)))
