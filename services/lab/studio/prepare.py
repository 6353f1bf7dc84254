"""The process that makes speech before a call, so that no model of the caller's loads the machine in it.

`python -m services.lab.studio.prepare` reads a JSON list of jobs from standard input and prints a JSON line
for each clip that it wrote. A job is {"voices", "text", "wav", "boundaries": bool}, whose voices, "piper" or
"espeak:VOICE:WORDS_PER_MINUTE", speak in turn until the boundaries of the words are found; or {"recording":
path, "folder": path}, which becomes a clip of what its speaker says after the last long pause.
"""

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
import soxr
from faster_whisper import WhisperModel
from piper import PiperVoice

from pipeline.asr.whisper import packaged_model
from pipeline.audible import LEVEL_DBFS, Run, audible_runs, voiced_limit
from pipeline.events import HEARING_RATE, WIRE_RATE, Pcm
from pipeline.tts.voice_files import find_voice
from services.lab import recording, speech_file
from services.lab.studio.clip import Clip
from services.lab.studio.splice import quietest
from services.lab.studio.words import words

SPOKEN_DBFS = -20.0
"""RMS of the audible parts as spoken, the same for every voice."""

OWN_PAUSE = 0.31
"""Seconds; a recording with a longer pause of its own is parted there."""

_SHORTEST, _LONGEST = 1.2, 5.0
_FADE = WIRE_RATE // 50
"""Samples around the voiced part of a recording in which its room fades away: 20 ms. More of it would end as
suddenly as no room does, and a voice detector takes that for the end of speech."""


class Studio:
    """Speaks texts and cuts recordings; each model is loaded when it is first needed."""

    @cached_property
    def _piper(self) -> PiperVoice:
        return PiperVoice.load(find_voice().model)

    @cached_property
    def _whisper(self) -> WhisperModel:
        return WhisperModel(str(packaged_model()), device="cpu", compute_type="int8", local_files_only=True)

    def clips(self, job: Mapping[str, Any]) -> Iterator[Clip]:
        """What a job comes to. Raises BadAudioError, CalledProcessError."""
        if "recording" in job:
            yield from self._cut(Path(job["recording"]), Path(job["folder"]))
        else:
            yield self._spoken(job["text"], job["voices"], Path(job["wav"]), boundaries=job["boundaries"])

    def _spoken(self, text: str, voices: Sequence[str], wav: Path, *, boundaries: bool) -> Clip:
        clip = Clip(str(wav), "", text.split(), [], LEVEL_DBFS)
        for voice in voices:
            pcm = self._by_piper(text) if voice == "piper" else _by_espeak(voice, text, wav)
            recording.write_wav(wav, amplified(pcm, gain(pcm, audible_runs(pcm))))
            clip = replace(clip, voice=voice)
            if not boundaries:
                break
            understood, between = self._words(pcm)
            if [words(word) for word in understood] == [words(word) for word in clip.words]:
                return replace(clip, boundaries=between)
        return clip

    def _by_piper(self, text: str) -> Pcm:
        pieces = [chunk.audio_float_array for chunk in self._piper.synthesize(text)]
        samples = soxr.resample(np.concatenate(pieces), self._piper.config.sample_rate, WIRE_RATE)
        return np.asarray(np.clip(samples * 32767, -32768, 32767), np.int16)

    def _cut(self, source: Path, folder: Path) -> Iterator[Clip]:
        whole = speech_file.load(source).pcm
        limit = voiced_limit(whole)
        # After every other stretch the speaker went on: there, an answer would be an interruption.
        for last in stretches(audible_runs(whole, limit))[-1:]:
            pcm = faded(whole[max(0, last.start - _FADE) : last.end + _FADE])
            wav = folder / f"{source.stem}.wav"
            factor = gain(pcm, audible_runs(pcm, limit))
            recording.write_wav(wav, amplified(pcm, factor))
            # Without silence at its end Whisper goes on talking.
            understood, between = self._words(np.concatenate((pcm, np.zeros(WIRE_RATE // 2, np.int16))))
            yield Clip(str(wav), wav.stem, understood, between, limit + 20 * math.log10(factor))

    def _words(self, pcm: Pcm) -> tuple[list[str], list[int]]:
        """What Whisper understands, and where one word ends and the next begins."""
        samples = soxr.resample(pcm.astype(np.float32) / 32768, WIRE_RATE, HEARING_RATE)
        segments, _ = self._whisper.transcribe(
            samples, language="en", beam_size=5, word_timestamps=True, condition_on_previous_text=False
        )
        found = [word for segment in segments for word in segment.words or [] if word.end - word.start > 0.05]
        between = [quietest(pcm, round((a.end + b.start) / 2 * WIRE_RATE)) for a, b in pairwise(found)]
        return [word.word.strip() for word in found], between


def _by_espeak(voice: str, text: str, wav: Path) -> Pcm:
    _, name, speed = voice.split(":")
    subprocess.run(["espeak-ng", "-v", name, "-s", speed, "-w", str(wav), text], check=True)
    return speech_file.load(wav, LEVEL_DBFS).pcm


def stretches(runs: Sequence[Run]) -> list[Run]:
    """Audible runs joined over pauses of up to OWN_PAUSE; those of 1.2 to 5 s, as one says in a breath."""
    joined: list[Run] = []
    for run in runs:
        if joined and run.start - joined[-1].end <= OWN_PAUSE * WIRE_RATE:
            joined[-1] = Run(joined[-1].start, run.end)
        else:
            joined.append(run)
    return [run for run in joined if _SHORTEST <= (run.end - run.start) / WIRE_RATE <= _LONGEST]


def gain(pcm: Pcm, runs: Sequence[Run]) -> float:
    """The factor that makes it SPOKEN_DBFS where it is audible, or as loud as it can be without clipping."""
    if not runs:
        return 1.0
    loud = np.concatenate([pcm[run.start : run.end] for run in runs]).astype(np.float64) / 32768
    wanted = 10 ** (SPOKEN_DBFS / 20) / float(np.sqrt(np.mean(loud * loud)))
    return min(wanted, 0.9 / float(np.abs(loud).max()))


def faded(pcm: Pcm) -> Pcm:
    """Faded in and out."""
    ramp = np.linspace(0.0, 1.0, _FADE)
    samples = pcm.astype(np.float64)
    samples[:_FADE] *= ramp
    samples[-_FADE:] *= ramp[::-1]
    return samples.astype(np.int16)


def amplified(pcm: Pcm, factor: float) -> Pcm:
    """Each sample times `factor`."""
    return np.clip(np.round(pcm * factor), -32768, 32767).astype(np.int16)


def main() -> None:
    """One JSON line for each clip, as soon as it is there."""
    studio = Studio()
    for job in json.load(sys.stdin):
        for clip in studio.clips(job):
            click.echo(json.dumps(asdict(clip)))


if __name__ == "__main__":
    main()
