"""Speech for tests, synthesised by the product's own voice (or espeak-ng's, as a second speaker)."""

import asyncio
import functools
import subprocess
import tempfile
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import soxr
from piper import PiperVoice

from pipeline.events import Pcm, SpeechChunk
from pipeline.tts.pieces import whole
from pipeline.tts.piper import PiperSettings, PiperSynthesizer, Voice, open_voice
from pipeline.tts.voice_files import find_voice, prepare_voice


@functools.lru_cache
def voice() -> PiperVoice:
    return PiperVoice.load(find_voice().model)


@functools.lru_cache
def spoken(text: str, rate: int = 48_000) -> Pcm:
    """`text` in Piper's voice, mono 16 bit at `rate`."""
    pieces = [chunk.audio_float_array for chunk in voice().synthesize(text)]
    audio = soxr.resample(np.concatenate(pieces), voice().config.sample_rate, rate)
    return (np.clip(audio * 0.7, -1, 1) * 32767).astype(np.int16)


@functools.lru_cache
def espeak(text: str, rate: int = 48_000) -> Pcm:
    """`text` in espeak-ng's voice."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        subprocess.run(["espeak-ng", "-w", str(path), text], check=True)
        with wave.open(str(path)) as file:
            native = file.getframerate()
            audio = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    return soxr.resample(audio, native, rate).astype(np.int16)


def silence(seconds: float, rate: int = 48_000) -> Pcm:
    return np.zeros(round(seconds * rate), np.int16)


def write_wav(path: Path, pcm: Pcm, rate: int = 48_000, channels: int = 1) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.repeat(pcm, channels).tobytes())
    return path


@functools.lru_cache
def _own_voice() -> Voice:
    with tempfile.TemporaryDirectory() as cache:
        return open_voice(prepare_voice(find_voice(), Path(cache)))


@functools.lru_cache
def steady_speech(text: str) -> SpeechChunk:
    """A clause exactly as a server with `tts.noise_scale` and `tts.noise_w_scale` 0 speaks it."""
    with ThreadPoolExecutor(1) as executor:
        settings = PiperSettings(noise_scale=0, noise_w=0)
        return asyncio.run(whole(PiperSynthesizer(_own_voice(), executor, settings).stream(text)))
