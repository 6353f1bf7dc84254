"""An independent ear for recordings: Whisper with its full window, after the call."""

import numpy as np
import soxr
from faster_whisper import WhisperModel

from pipeline.asr.whisper import packaged_model
from pipeline.events import HEARING_RATE, WIRE_RATE, Pcm


def transcripts(recordings: list[Pcm]) -> list[str]:
    """What is said in each. Blocks for about a second each; to be called when nothing is measured."""
    whisper = WhisperModel(str(packaged_model()), device="cpu", compute_type="int8", local_files_only=True)
    return [_transcript(whisper, pcm) for pcm in recordings]


def _transcript(whisper: WhisperModel, pcm: Pcm) -> str:
    samples = soxr.resample(pcm.astype(np.float32) / 32768, WIRE_RATE, HEARING_RATE)
    segments, _ = whisper.transcribe(
        samples, language="en", beam_size=5, condition_on_previous_text=False, without_timestamps=False
    )
    return " ".join(segment.text.strip() for segment in segments)
